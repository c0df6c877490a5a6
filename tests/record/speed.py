"""Times and sizes of docs/performance.md, from speed.json, scaling.json and predict.json."""

from __future__ import annotations

from typing import Any

from tests.record.blocks import result, table

OURS = {
    "`dp-tr-newton`, one party": "ours, 1 party",
    "the same, three parties, secure aggregation": "ours, 3 parties, trust parties",
    "the same, ten parties, secure aggregation": "ours, 10 parties, trust parties",
    "the same, three parties, trust `coordinator`": "ours, 3 parties, trust coordinator",
    "the same, three parties, trust `nobody`": "ours, 3 parties, trust nobody",
    "`auto`, one party": "ours, 1 party, auto",
    "LightGBM": "LightGBM",
    "scikit-learn's histogram boosting": "scikit-learn hist",
}
SIZES = ("100,000 x 28", "1,000,000 x 28", "10,000,000 x 28", "100,000 x 300", "100,000 x 1,000")


def least(repetitions: list[dict[str, Any]], unit: str) -> float:
    return min(one[unit] for one in repetitions)


def ratio(part: dict[str, Any], name: str, unit: str) -> float:
    """Of the quicker of XGBoost's two ways, each measured by its best repetition."""
    known = part["repetitions"]
    anchors = [known[key] for key in ("XGBoost hist", "XGBoost hist, 1 thread")]
    return least(known[name], unit) / min(least(anchor, unit) for anchor in anchors)


def others_block() -> str:
    record = result("speed")
    lines = [
        (
            title,
            *(
                f"{ratio(record[part], name, 'wall'):.2f} ({ratio(record[part], name, 'cpu'):.2f})"
                for part in ("synthetic", "covtype")
            ),
        )
        for title, name in OURS.items()
    ]
    head = ("wall clock (CPU seconds), of XGBoost's", "1,000,000 x 28, made up",
            "covtype, 581,012 x 54")  # fmt: skip
    return table(head, lines)


def predict_block() -> str:
    (goal,) = result("predict")["requirements"]
    adult = next(
        one for one in result("speed")["requirements"] if one["what"].startswith("adult, default")
    )
    return (
        f"Prediction of 1,000,000 rows takes {goal['wall']:.2f} of XGBoost's time with models of "
        "100 trees (`python benchmarks/predict.py`).\n\n"
        "On adult, `auto` takes a tenth of the time of interpret's DP-EBM, each at its defaults: "
        f"{adult['wall']:.3f} by the clock and {adult['cpu']:.3f} of its CPU seconds in that run."
    )


def sizes_block() -> str:
    cells, lines = result("scaling")["cells"], []
    for name in SIZES:
        found = cells[name]
        cpu = least(found, "cpu")
        memory = max(one["above_mb"] for one in found)
        lines.append(
            (name, f"{least(found, 'wall'):.2f}", f"{cpu:.2f}" if cpu < 10 else f"{cpu:.1f}",
             f"{memory:.0f} of {found[0]['bound_mb']:.0f}")
        )  # fmt: skip
    head = ("table", "wall clock, s", "CPU, s", "MB above the imports, and their bound")
    return table(head, lines)


def blocks() -> dict[str, str]:
    return {"others": others_block(), "predictions": predict_block(), "sizes": sizes_block()}
