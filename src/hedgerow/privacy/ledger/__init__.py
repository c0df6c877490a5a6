"""The ledger: append-only, hash-chained, on disk before anyone is asked.

ledger.py       what people open: a ledger file, its budget and what was spent
in_force.py     which ledger pays for a fit that names none
store.py        lines in one SQLite file, for several threads and processes
paging.py       a few of very many lines, page by page
line.py         one line, and the hash chain
migrations.py   the file's format; older ones are brought up to date
disk.py         who opens the file; a simulated disk takes its place in tests
file.py         is the file in place, and is it ours?
reservation.py  reserves a plan's budget and charges each release against it
spending.py     what is reserved over all runs, and ceilings
labels.py       what labels have paid, beside all runs
refusals.py     refusals on record
witnesses.py    heads that parties leave with each other, and lost lines that they show
gaps.py         what lost lines may have cost, with the proof
verify.py       adds a ledger up again
"""
