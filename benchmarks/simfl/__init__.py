"""Parts of benchmarks/simfl_tables.py."""
