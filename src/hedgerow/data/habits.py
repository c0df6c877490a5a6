"""Names that people bring along from other libraries, and what to write here instead."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

# What scikit-learn, XGBoost, LightGBM, CatBoost and diffprivlib call it, by our name. A name may
# stand twice: families of settings do not have the same ones.
_SAME = {
    "n_trees": ("n_estimators", "num_boost_round", "num_iterations", "num_trees", "iterations",
                "max_iter", "n_rounds", "max_rounds", "trees"),
    "max_depth": ("depth", "tree_depth", "max_leaves", "max_leaf_nodes", "num_leaves"),
    "learning_rate": ("eta", "lr", "shrinkage_rate"),
    "n_bins": ("max_bin", "max_bins", "border_count"),
    "reg_lambda": ("lambda", "lambda_l2", "l2_regularization", "l2_leaf_reg"),
    "gain_penalty": ("gamma", "min_split_loss", "min_split_gain", "min_gain_to_split",
                     "min_impurity_decrease"),
    "leaf_clip": ("max_delta_step",),
    "min_child_weight": ("min_hessian", "min_sum_hessian_in_leaf"),
    "min_hessian": ("min_child_weight", "min_sum_hessian_in_leaf"),
    "min_samples_leaf": ("min_child_samples", "min_data_in_leaf"),
    "features_per_tree": ("colsample_bytree", "feature_fraction", "max_features", "rsm"),
    "sample_rate": ("subsample", "bagging_fraction", "max_samples"),
    "random_state": ("seed", "random_seed"),
    "verbose": ("verbosity", "verbose_eval"),
    "monotone": ("monotone_constraints", "monotonic_cst"),
    "warm_start_from": ("warm_start", "xgb_model", "init_model"),
    "epsilon": ("eps", "privacy_budget"),
    "ledger": ("accountant",),
    "settings": ("params",),
    "class_weight": ("class_weights", "scale_pos_weight", "is_unbalance", "auto_class_weights"),
    "sample_weight": ("weight", "weights", "sample_weights", "w"),
    "max_weight": ("weight_cap", "max_sample_weight", "weight_bound"),
    "parties": ("clients", "sites", "party"),
}  # fmt: skip

_STOPPING = (
    "Scores on rows that decide when to stop are not covered by epsilon, so the plan fixes the "
    "rounds; measure the model afterwards with evaluate_privately"
)
_WEIGHTS = (
    "Weights of rows go into fit of PrivateBoostingClassifier and PrivateBoostingRegressor, with a "
    "public cap, max_weight, which all noise grows with; other estimators have none. Classes can "
    "have weights, without more noise: class_weight"
)
_NO_SCORES = "A model that rows begin with must be paid for or public: give it as warm_start_from"
# What no parameter here stands for, and why.
_REASONS = {
    **dict.fromkeys(
        ("eval_set", "eval_metric", "early_stopping", "early_stopping_rounds", "callbacks",
         "validation_fraction", "n_iter_no_change", "eval_names", "X_val", "y_val"), _STOPPING
    ),
    "sample_weight": _WEIGHTS,
    **dict.fromkeys(("base_margin", "init_score"), _NO_SCORES),
    **dict.fromkeys(
        ("categorical_feature", "categorical_features", "cat_features", "enable_categorical",
         "feature_types", "feature_types_in"),
        "The schema says which columns have categories: Schema.read(path), or Categorical",
    ),
    **dict.fromkeys(("objective", "num_class", "application"),
                    "The task follows from the label in the schema; there is nothing to choose"),
    "missing": "NaN and None are missing values, and every split says where they go",
    **dict.fromkeys(("n_jobs", "nthread", "num_threads", "thread_count"),
                    "Loops use all cores; the environment's NUMBA_NUM_THREADS limits them"),
    **dict.fromkeys(("device", "tree_method", "booster", "boosting_type", "grow_policy"),
                    "The parameter method chooses the algorithm, see `hedgerow methods`"),
    "silent": "A fit prints nothing unless verbose is above 0",
}  # fmt: skip

# Attributes of other libraries' models, and what to write here.
_ATTRIBUTES = {
    "save_model": "model.save(path) writes it, and hedgerow.load(path) brings it back",
    "load_model": "hedgerow.load(path) gives a fitted estimator",
    "get_booster": "hedgerow.export has XGBoost's and other formats",
    "booster_": "hedgerow.export has XGBoost's and other formats",
    "to_json": "hedgerow.export has XGBoost's and other formats",
    "explain_global": "model.explain() has the effects, explain().plot(column) draws one",
    "plot_importance": "model.explain().importances has them",
    **dict.fromkeys(("best_iteration", "best_score", "evals_result"), _STOPPING),
    **dict.fromkeys(("epsilon_", "delta_", "noise_scale_"),
                    "model.statement_ has what the model promises"),
}  # fmt: skip


def attribute_here(name: str) -> str:
    """What to write instead of another library's attribute; empty if nothing is known of it."""
    return _ATTRIBUTES.get(name, "")


def known_as(name: str, known: Collection[str]) -> str | None:
    """Which known name somebody means who writes another library's name, or misspells ours."""
    for ours, theirs in _SAME.items():
        if name in theirs and ours in known:
            return ours
    near = get_close_matches(name, known, 1)
    return near[0] if near else None


def reason_against(name: str) -> str:
    """Why there is nothing of another library's name here; empty if nothing is known of it."""
    return _REASONS.get(name, "")


def did_you_mean(name: str, known: Collection[str]) -> str:
    """A hint for an error about an unknown name, with a space in front; empty if there is none."""
    if reason := reason_against(name):
        return f" ({reason})"
    meant = known_as(name, known)
    return f" (did you mean {meant!r}?)" if meant else ""
