"""Which page has which blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.record import (
    accuracy,
    attacks,
    audit,
    bands,
    claims,
    cluster,
    evaluation,
    grislain,
    gubler,
    le,
    li,
    maddock,
    speed,
)
from tests.record.blocks import ROOT

PAGES: dict[str, Callable[[], dict[str, str]]] = {
    "docs/papers/maddock2022.md": maddock.blocks,
    "docs/papers/grislain2021.md": grislain.blocks,
    "docs/papers/gubler2023.md": gubler.blocks,
    "docs/papers/le2021.md": le.blocks,
    "docs/papers/li2020.md": li.blocks,
    "docs/papers.md": claims.blocks,
    "benchmarks/README.md": claims.blocks,
    "docs/accuracy.md": accuracy.blocks,
    "docs/research/default-method.md": accuracy.fine_blocks,
    "docs/dp-xgboost.md": grislain.figures,
    "docs/vertical.md": lambda: {
        "protections": le.vertical_block(),
        "scaling": le.scaling_block(),
        **audit.blocks(),
    },
    "docs/simfl.md": lambda: {"scaling": li.scaling_block()},
    "docs/audit.md": attacks.blocks,
    "docs/performance.md": speed.blocks,
    "docs/explain.md": bands.blocks,
    "docs/evaluation.md": evaluation.blocks,
    "docs/cluster.md": cluster.blocks,
}


PICTURES: Path = ROOT / "docs" / "images" / "papers"


def pictures() -> dict[str, str]:
    """Names and text of all drawings."""
    return {**le.pictures(), **maddock.pictures(), **grislain.pictures()}
