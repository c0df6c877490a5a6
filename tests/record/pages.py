"""Which page has which blocks."""

from __future__ import annotations

from collections.abc import Callable

from tests.record import accuracy, audit, bands, claims, grislain, gubler, le, li, maddock, speed

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
    "docs/performance.md": speed.blocks,
    "docs/explain.md": bands.blocks,
}
