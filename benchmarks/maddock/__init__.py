"""Parts of `maddock_tables.py`: the published tables and figures, rerun."""
