"""A data holder: it checks, charges its own ledger, answers or refuses.

party.py           rows, running scores, ledger and limits; every message ends here
run.py             checks each query against the plan, the roster and the noise before the charge
approvals.py       what people decided about plans, on the ledger
limits.py          the operator's own limits, whatever a plan says
witnesses.py       what others know of its ledger, and it of theirs
answering.py       exact sums with this party's noise and mask
sessions.py        its side of sessions with other parties
running_scores.py  scores of its rows, rebuilt from trees after a loss
"""
