"""The console: pages for the operator and the privacy officer of a site, and for monitoring.

In the site's process:
given.py                  what a question carries, read and checked
party_questions.py        what it may ask a party: its state, plans, roster and limits
ledger_questions.py       what it may ask of a ledger: lines, budget, verification, refusals
coordinator_questions.py  what it may ask a coordinator: sites, runs, models
budget.py                 the budget over time, by run, asker and purpose; what still fits
ledger_lines.py           ledger lines in words, page by page
waiting_plans.py          plans that wait, compared with the last approved one
standing.py               rosters and limits with their differences

In the console's own process, which has no rows, keys or files of the site:
client.py                 asks the site's process through its socket
server.py                 one port, TLS beyond this machine
security.py               hosts, forms, headers; what every request passes
web.py                    templates, the session, and a page for every refusal
pages.py                  the pages of a party, and signing in
coordinator_pages.py      the pages of a coordinator
charts.py                 the budget as a picture
downloads.py              the ledger as CSV and PDF
metrics.py                /healthz and /metrics

HTML, the style sheet and a little script lie in `templates`.
"""
