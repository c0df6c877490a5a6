"""Sites of a federation on hosts of their own, for `benchmarks/network.py`.

hosts.py      network namespaces joined by a switch that delays, loses and slows frames
sites.py      four parties and a coordinator on such hosts, and what their ledgers say
strangers.py  whoever knocks without belonging there
"""
