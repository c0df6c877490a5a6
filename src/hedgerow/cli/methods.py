"""`hedgerow methods`: the names that --method takes, and every setting with its meaning."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from hedgerow.cli import options
from hedgerow.cli.given import flag_of
from hedgerow.cli.screen import print_json, results, table
from hedgerow.privacy.settings import Privacy, Settings

# A few words each; docs/settings.md says more. Tests compare the names with `settings.py`.
MEANINGS = {
    "epsilon": "privacy loss that is allowed",
    "delta": "its slack; well below 1 / rows; 0 with pure accounting",
    "trust": "who is trusted: coordinator, parties or nobody",
    "accounting": "how the cost is counted: exact, renyi or pure",
    "colluding": "parties that may leak, omit or lie",
    "minimum_parties": "the smallest set that is summed; 0 = 3, and at least colluding + 2",
    "spare": "attempts paid in advance for drop-outs",
    "n_trees": "number of trees",
    "max_depth": "depth of a tree",
    "learning_rate": "part of a leaf's weight that is added",
    "n_bins": "pieces into which a numeric column is cut",
    "reg_lambda": "added to every Hessian sum or count",
    "leaf_clip": "largest weight of a leaf, before the learning rate",
    "floor_deviations": "noisy Hessians are held above so many deviations of their noise",
    "shrinkage": "whether trees that look like noise step less: stein or none",
    "update": "how sums become leaf values: newton, gradient or averaging",
    "cycles": "above 0: n_trees is so many times the number of columns",
    "split": "how a tree is shaped: totally-random, partially-random or histogram",
    "split_caution": "how strictly learned splits allow for their noise; 0 = gains as released",
    "gain_penalty": "a learned split must gain more than this",
    "min_hessian": "a node with less (noisy) Hessian, or fewer rows, becomes a leaf",
    "reuse_histogram": "learned trees take leaves from the query that cut their parent",
    "candidates": "where columns may be cut: uniform, log, iterative-hessian, quantiles or "
    "quantiles-not-private",
    "candidate_rounds": "rounds in which iterative-hessian refines its cuts",
    "candidate_share": "part of the budget (mu²) for paid cuts; 0 = as much a column as a tree",
    "cuts": "edges by column that quantiles-not-private writes; never given by hand",
    "batch_size": "trees that share one release",
    "batch_fraction": "the same as a part of all trees; above 0 it replaces batch_size",
    "features_per_tree": "columns that a tree may use; 0 = all",
    "feature_order": "which columns those are: cyclical or random",
    "category_split": "one category against the rest (equality), or half of them (subset)",
    "rows_hint": "how many rows there are, if that is public; 0 = buy a noisy count",
    "monotone": 'columns whose effect may only rise or fall: {"age": 1, "dose": -1}',
    "warm_start": "hash of the model that a run builds on; set by --warm-start-from",
    "warm_start_says": "what that model promises, or public; set by --warm-start-from",
    "min_samples_leaf": "private-tree: fewer (noisy) rows are not split off; dp-xgboost: a leaf "
    "divides by at least so many",
    "leaf_share": "part of a path's epsilon for its leaf; 0 = by a public rule",
    "bounds_share": "private-tree: part of a node's epsilon that ranks columns; 0 = by the rule",
    "save_budget": "private-tree: rank columns, ask few, hand down what is left",
    "sketch_share": "dp-xgboost: part of a tree's epsilon for where columns are cut; 0 = not asked",
    "sample_rate": "dp-xgboost: probability that a row takes part in a tree (Poisson sampling)",
    "sample_by": "dp-xgboost: whether a tree or each query has its own sample: tree or question",
    "level_growth": "dp-xgboost: epsilon of a level's splits beside that of the level above",
    "utility": "dp-xgboost: what makes a cut good: separation or gain",
    "selector": "dp-xgboost: how a cut is drawn by its utility: permute-and-flip or exponential",
    "leaf_rule": "dp-xgboost: what of a leaf is released: sum-and-count, least-rows or plain",
    "gradient_bound": "dp-xgboost: largest gradient of a row",
    "gradient_rule": "dp-xgboost: rows beyond it are clamped (clip) or left out (filter)",
    "loss": "dp-xgboost: loss of classes: log, or squared as in the paper",
    "start_share": "part of the budget (mu²) that buys the base rate; 0 = none",
}


def methods(json: options.Json = False) -> None:
    """List the methods and every setting: default, meaning, and how to give it."""
    from hedgerow.methods.registry import METHODS

    settings = [_setting(Privacy, name) for name in _names(Privacy)]
    settings += [_setting(Settings, name) for name in _names(Settings)]
    if json:
        listed = [
            {
                "name": method.name,
                "summary": method.summary,
                "queries": dict(
                    zip(("candidates", "splits", "weights"), method.queries, strict=True)
                ),
                "rounds": method.rounds,
                "trust": method.trust,
                "settings": {
                    name: value
                    for name, value in method.settings({}).to_dict().items()
                    if name in method.uses
                },
            }
            for method in METHODS.values()
        ]
        print_json({"methods": listed, "settings": settings})
        return
    shown = table("Methods", "name", "what it does", "queries", "rounds", "own defaults")
    for method in METHODS.values():
        defaults = ", ".join(f"{k}={v}" for k, v in method.defaults.items())
        asked = " + ".join(part for part in method.queries if part != "0")
        shown.add_row(method.name, method.summary, asked, method.rounds, defaults or "those below")
    console = results()
    console.print(shown)
    what = ("setting", "default", "meaning", "option")
    console.print(_listing("Privacy settings", what, settings, "privacy"))
    console.print(_listing("Settings of the methods", what, settings, "method"))


def _names(cls: type[Any]) -> list[str]:
    return [field.name for field in fields(cls)]


def _setting(cls: type[Any], name: str) -> dict[str, Any]:
    default = next(field.default for field in fields(cls) if field.name == name)
    if name == "trust":  # the default depends on how many parties there are
        default = "parties, or coordinator for one table"
    return {
        "name": name,
        "kind": "privacy" if cls is Privacy else "method",
        "default": None if default is MISSING else default,
        "meaning": MEANINGS.get(name, ""),
        "option": flag_of(name),
    }


def _listing(title: str, what: tuple[str, ...], settings: list[dict[str, Any]], kind: str) -> Any:
    shown = table(title, *what)
    for entry in settings:
        if entry["kind"] == kind:
            default = "none; must be given" if entry["default"] is None else str(entry["default"])
            how = entry["option"] + ("=VALUE" if entry["option"].startswith("--set") else " VALUE")
            shown.add_row(entry["name"], default, entry["meaning"], how)
    return shown
