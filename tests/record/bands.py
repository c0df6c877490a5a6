"""How often error bands hold noise-free shapes: the table of docs/explain.md."""

from __future__ import annotations

from tests.record.blocks import result, table

EPSILONS = (0.5, 1.0, 4.0)


def table_block() -> str:
    """Part of the cells inside / of the rows' weights / of the weights of the worst column."""
    coverage = result("bands")["coverage"]
    known = {(one["table"], one["method"], one["epsilon"]): one for one in coverage}
    lines = []
    for method in dict.fromkeys(one["method"] for one in coverage):
        shown = []
        for name in ("stays", "adult"):
            for epsilon in EPSILONS:
                one = known[name, method, epsilon]
                shares = (one["by_cell"], one["by_weight"], one["worst_column"])
                shown.append(" / ".join(f"{share:.2f}" for share in shares))
        lines.append((method, *shown))
    head = ("method", "stays, epsilon 0.5", "1", "4", "adult, epsilon 0.5", "1", "4")
    return table(head, lines)


def few() -> list[str]:
    """Methods with half of the trainings."""
    return list(
        dict.fromkeys(o["method"] for o in result("bands")["coverage"] if o["trainings"] == 10)
    )


def blocks() -> dict[str, str]:
    trained = f"20 trainings each (10 of {', '.join(f'`{name}`' for name in few())})."
    return {"bands": table_block(), "trainings": trained}
