"""One owner's table on a Dask cluster: one party whose rows lie in partitions on workers.

engine.py             the federation of one owner
rows.py               the party's rows seen as one: exact sums, whatever happens to workers
partitions.py         what runs on workers
sources.py            where partitions come from: Parquet files, Dask frames
placing.py            which worker holds which partition, also after a loss
cluster.py            a cluster started here or reached at an address; tasks on it
fitting.py            Dask frames in estimators
ignore_interrupts.py  makes workers that we started ignore Ctrl-C
"""
