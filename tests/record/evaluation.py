"""How far private evaluations lie from exact ones: the table of docs/evaluation.md."""

from __future__ import annotations

from tests.record.blocks import result, table

MEASURES = {
    "auc": "AUC", "accuracy": "accuracy", "log_loss": "log loss",
    "calibration_error": "calibration error",
}  # fmt: skip


def precision_block() -> str:
    """Root mean square of private less exact, by epsilon."""
    lines = []
    for cell in result("private_evaluation")["cells"]:
        words = f"{cell['epsilon']:g}"
        if cell["parties"] > 1:
            assert cell["parties"] == 3
            words += ", three parties of which one may leak"
        found = (cell["summary"][name]["root_mean_square"] for name in MEASURES)
        lines.append((words, *(f"{one:.4f}" for one in found)))
    return table(("epsilon", *MEASURES.values()), lines)


def blocks() -> dict[str, str]:
    return {"precision": precision_block()}
