"""A data holder: it checks, charges its own ledger, answers or refuses.

party.py           rows, running scores, ledger and limits; every message ends here
run.py             a run that it opened, and what its queries must be
limits.py          what it allows, whatever a plan says
sessions.py        its side of sessions with other parties
running_scores.py  scores of its rows, rebuilt from trees after a loss
"""
