"""Le et al. 2021: tables 1 and 2 (times), figures 4 and 5 (losses after every tree)."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

from tests.record import drawing
from tests.record.blocks import NONE, published, result, span, table

DATASETS = {"credit1_full": "Give Me Some Credit", "credit2": "Default of Credit Card Clients"}
TIMES = {
    "plain": "plain_xgboost",
    "Paillier": "paillier",
    "LDP Laplace, 1 a tree": "ldp_laplace_epsilon_1",
    "LDP Duchi, 1 a tree": "ldp_duchi_epsilon_1",
    "LDP Duchi, first order, 1 a tree": "ldp_duchi_first_order_epsilon_1",
    "LDP Laplace, 3 a tree": "ldp_laplace_epsilon_3",
    "LDP Duchi, 3 a tree": "ldp_duchi_epsilon_3",
    "LDP Duchi, first order, 3 a tree": "ldp_duchi_first_order_epsilon_3",
    "SMM-1": None,
    "SMM-2": None,
}
LOSSES = (
    "plain", "LDP Laplace, 1 a tree", "LDP Duchi, 1 a tree", "LDP Duchi, first order, 1 a tree",
    "LDP Laplace, 3 a tree", "LDP Duchi, 3 a tree", "LDP Duchi, first order, 3 a tree",
    "labels once, 1 in all", "labels once, 3 in all",
)  # fmt: skip
AFTER = (1, 2, 5, 10, 15, 20)


def repetitions(dataset: str, way: str, parties: int = 2) -> list[dict[str, Any]]:
    start = f"{dataset}, {parties} parties, {way}, "
    cells = result("fedxgboost_tables")["cells"]
    return [one for name, one in cells.items() if name.startswith(start) and _last(name, start)]


def _last(name: str, start: str) -> bool:
    return name.removeprefix(start).isdigit()


def least(dataset: str, way: str) -> dict[str, Any] | None:
    """The quickest repetition, which is the one that times are taken from."""
    found = repetitions(dataset, way)
    return min(found, key=lambda one: one["processor"]) if found else None


def ratio(dataset: str, way: str) -> float | None:
    one, plain = least(dataset, way), least(dataset, "plain")
    return None if one is None or plain is None else one["processor"] / plain["processor"]


def times_block(dataset: str) -> str:
    """Table 1 or 2: seconds there, CPU seconds a tree here, and both as ratios to plain."""
    document, lines = published("fedxgboost2021")["seconds"], []
    place = document["datasets"].index(dataset)
    plain = document["plain_xgboost"][place]
    for way, key in TIMES.items():
        one, ours = least(dataset, way), ratio(dataset, way)
        theirs = document[key][place] if key else None
        from_rows = one["extrapolated_from"] if one else None
        note = f", extrapolated from {from_rows:,} rows" if from_rows else ""
        lines.append(
            (
                way,
                NONE if theirs is None else theirs,
                NONE if one is None else f"{one['processor']:.3f}{note}",
                NONE if theirs is None else f"{theirs / plain:.2f}",
                NONE if ours is None else f"{ours:,.2f}" if ours < 100 else f"{ours:,.0f}",
                len(repetitions(dataset, way)),
            )
        )
    head = ("", "published, s", "ours, CPU s a tree", "published / plain", "ours / plain", "fits")
    return table(head, lines)


def losses_block(dataset: str) -> str:
    """Figure 4 or 5: mean training loss after so many trees, with its standard error."""
    lines = []
    for way in LOSSES:
        found = repetitions(dataset, way)
        shown = [_with_error([one["loss"][n - 1] for one in found]) for n in AFTER]
        aucs = _with_error([one["auc"] for one in found])
        lines.append((way, *shown, aucs, len(found)))
    known = result("fedxgboost_tables")["xgboost"][dataset]
    shown = [f"{known['loss'][n - 1]:.4f}" for n in AFTER]
    lines.append(("XGBoost, 32 bins, pooled", *shown, f"{known['auc']:.4f}", 1))
    return table(("log loss after trees", *map(str, AFTER), "test AUC", "fits"), lines)


def _with_error(values: list[float]) -> str:
    if not values:
        return NONE
    if len(values) == 1 or max(values) == min(values):
        return f"{mean(values):.4f}"
    return f"{mean(values):.4f} ({stdev(values) / len(values) ** 0.5:.4f})"


def distance_block() -> str:
    """How far noise takes the loss of the last tree from the plain one, for both epsilons."""
    lines = []
    for dataset, title in DATASETS.items():
        base = mean(one["loss"][-1] for one in repetitions(dataset, "plain"))
        for epsilon in (1, 3):
            for way in ("Laplace", "Duchi", "Duchi, first order"):
                found = repetitions(dataset, f"LDP {way}, {epsilon} a tree")
                far = [one["loss"][-1] / base - 1 for one in found]
                lines.append((title, f"{way}, {epsilon} a tree", f"{100 * mean(far):+.1f} %"))
    return table(("data", "mechanism", "loss after 20 trees beside plain"), lines)


def vertical_block() -> str:
    """The table of docs/vertical.md: time, bytes, loss and AUC of every protection."""
    lines = []
    for title, way in {
        "none": "plain", "XGBoost hist, 32 bins, all columns in one place": "",
        "ldp, labels once, 1 in all": "labels once, 1 in all",
        "ldp, labels once, 3 in all": "labels once, 3 in all",
        "ldp, Duchi, 1 a tree (20 in all)": "LDP Duchi, 1 a tree",
        "ldp, Duchi, 3 a tree (60 in all)": "LDP Duchi, 3 a tree",
        "ldp, Duchi, first order, 1 a tree": "LDP Duchi, first order, 1 a tree",
        "ldp, Laplace, 1 a tree": "LDP Laplace, 1 a tree",
        "smm-1": "SMM-1", "smm-2": "SMM-2", "paillier": "Paillier",
    }.items():  # fmt: skip
        cells = [cell for dataset in DATASETS for cell in _vertical_cells(dataset, way)]
        lines.append((title, *cells))
    head = [""]
    for dataset in DATASETS:
        head += [f"{dataset}: time", "MB a tree", "loss", "AUC"]
    return table(head, lines)


def _vertical_cells(dataset: str, way: str) -> tuple[str, str, str, str]:
    if not way:
        known = result("fedxgboost_tables")["xgboost"][dataset]
        return "", "", f"{known['loss'][-1]:.4f}", f"{known['auc']:.4f}"
    one, ours = least(dataset, way), ratio(dataset, way)
    if one is None or ours is None:
        return NONE, NONE, NONE, NONE
    document = published("fedxgboost2021")["seconds"]
    place, key = document["datasets"].index(dataset), TIMES.get(way)
    told = document[key][place] / document["plain_xgboost"][place] if key else None
    time = "1" if way == "plain" else f"{ours:.2f}" if ours < 100 else f"{ours:,.0f}"
    if rows := one["extrapolated_from"]:
        time += f", extrapolated from {rows:,} rows"
    if told and way != "plain":
        time += f" ({told:.2f})"
    found, quick = repetitions(dataset, way), one["trees"] > 1
    loss = _with_error([r["loss"][-1] for r in found]) if quick else "as none"
    auc = _with_error([r["auc"] for r in found]) if quick else "as none"
    size = one["bytes"] / 1e6
    return time, f"{size:.1f}" if size < 10 else f"{size:,.0f}", loss, auc


def scaling_block() -> str:
    record = result("vertical_scaling")
    cells, lines = record["cells"], []
    for way in ("none", "ldp"):
        small = cells[f"{way}, 1000"]
        for rows in (500_000, 1_000_000):
            one = cells[f"{way}, {rows}"]
            above = one["megabytes"] - small["megabytes"]
            sent = one["sent"]["to passive"] / rows / record["trees"]
            lines.append(
                (f"{rows:,}", way, f"{one['wall']:.0f}", f"{one['processor']:.0f}",
                 f"{above:.0f}", f"{sent:.0f}")
            )  # fmt: skip
    head = ("rows", "protection", "seconds", "CPU seconds", "MB above 1,000 rows",
            "bytes a row and tree to passive parties")  # fmt: skip
    return table(head, lines)


def repeats() -> str:
    quick = [len(repetitions(d, way)) for d in DATASETS for way in LOSSES]
    return span(quick)


def factors_block() -> str:
    """What each way to speed up Paillier saves: a tree without it beside a tree with all."""
    record = result("paillier_factors")
    lines = [(way, f"{lost:.2f}") for way, lost in record["factor_lost_without"].items()]
    lines.append(("any of them", f"{record['factor']:.1f}"))
    return table(("a tree takes so many times as long without", "factor"), lines)


def pictures() -> dict[str, str]:
    """Figures 4 and 5, mean training loss after every tree."""
    found = {}
    for number, (dataset, title) in zip((4, 5), DATASETS.items(), strict=True):
        series = {}
        for way in LOSSES:
            losses = [one["loss"] for one in repetitions(dataset, way)]
            means = [mean(after) for after in zip(*losses, strict=True)]
            series[way] = [(float(i + 1), loss) for i, loss in enumerate(means)]
        found[f"le2021-figure-{number}"] = drawing.lines(
            f"{title}, training rows", "trees", "log loss", series, dashed=("plain",)
        )
    return found


def blocks() -> dict[str, str]:
    return {
        "factors": factors_block(),
        "table 1": times_block("credit1_full"),
        "table 2": times_block("credit2"),
        "figure 4": losses_block("credit1_full"),
        "figure 5": losses_block("credit2"),
        "distance": distance_block(),
    }
