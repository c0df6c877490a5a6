"""One owner's table on a Dask cluster: one party whose rows lie in partitions on workers.

Only this folder imports Dask, and speaks of workers. `partitions.py` is what runs on them,
`sources.py` where partitions come from, `cluster.py` tasks on workers that may vanish, `placing.py`
which worker holds what, `rows.py` the party's rows seen as one, `engine.py` the federation.
"""
