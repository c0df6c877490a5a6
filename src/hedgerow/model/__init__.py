"""Trees, ensembles and their files."""
