"""What carries messages: one process, NVFlare, Dask."""
