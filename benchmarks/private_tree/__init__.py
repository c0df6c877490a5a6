"""Parts of the benchmark of the one readable tree."""
