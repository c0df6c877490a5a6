"""What labels have paid in agreements of parties: pure epsilons, counted beside all runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.spending import of_month
from hedgerow.privacy.ledger.store import COORDINATOR, LineStore


def label_spending(ledger: LineStore, owner: str, monthly: bool = False) -> float:
    """Pure epsilons that an owner's labels have paid in agreements, which simply add up.

    They protect a label where one is replaced, so they are counted beside other runs, not with
    them. The coordinator has no labels: for it those of all parties are added up, because one
    label may have been in several parties' hands.
    """
    agreed, settled = (
        of_month(ledger, owner, kind) if monthly else ledger.lines(owner, kind)
        for kind in ("disclose", "settle")
    )
    return _labels(agreed, settled, owner)


def label_spending_until(ledger: LineStore, owner: str, line: int) -> float:
    """The same up to a line of the ledger."""
    kinds = (ledger.lines(owner, kind) for kind in ("disclose", "settle"))
    agreed, settled = ([one for one in lines if one.seq <= line] for lines in kinds)
    return _labels(agreed, settled, owner)


def _labels(agreed: Sequence[Line], settled: Sequence[Line], owner: str) -> float:
    paid = [
        float(epsilon)
        for line in agreed
        for party, epsilon in line.values["agreement"].get("spends", {}).items()
        if owner in (party, COORDINATOR)
    ]
    return math.fsum([*paid, *(float(line.values["labels"]) for line in settled)])
