"""Parts of the benchmark of `dp-xgboost`."""
