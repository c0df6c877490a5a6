"""The order of tests: dear groups first, or shuffled by HEDGEROW_TEST_SEED.

conftest.py registers this module as a plugin.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from random import Random
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.randomness import SEED

# Tests that share something dear (sites, a cluster, compiled loops): one process runs each group.
GROUPS = (
    "tests/engines/grpc/",
    "tests/e2e/test_sites",
    "tests/engines/dask/",
    "tests/crashes/",
    "tests/methods/fedxgboost/",
    "tests/e2e/test_open_federation",
    "tests/e2e/test_vertical_sites",
    "tests/deployment/test_processes",
    "tests/methods/simfl/",
    "tests/e2e/test_command_line",
)
# These compile most loops, which processes of later tests then find on disk.
FIRST = ("tests/contracts/", "tests/oracle/", "tests/attacks/")
ONLY = os.environ.get("HEDGEROW_TEST_ONLY")  # a file that names the tests to run, one a line


class ByGroup(LoadScopeScheduling):
    """Tests go to whichever process is free, but those of a group to one."""

    def _split_scope(self, nodeid: str) -> str:
        return next((group for group in GROUPS if nodeid.startswith(group)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGroup:
    config.option.loadscopereorder = False  # in the order below
    return ByGroup(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if ONLY is not None:
        with open(ONLY, encoding="utf-8") as file:
            wanted = set(file.read().splitlines())
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in wanted])
        items[:] = [item for item in items if item.nodeid in wanted]
    names = {item.nodeid: item for item in items}
    order = shuffled(list(names), SEED) if SEED else dear_first(list(names))
    items[:] = [names[name] for name in order]


def dear_first(names: Sequence[str]) -> list[str]:
    """Groups before the many small tests: no process is left with one when the others are done."""
    order = (*FIRST, *GROUPS)

    def turn(name: str) -> int:
        return next((i for i, start in enumerate(order) if name.startswith(start)), len(order))

    return sorted(names, key=turn)


def shuffled(names: Sequence[str], seed: int) -> list[str]:
    """Files in random order and tests of a file too; the files of a group stay together."""
    rng = Random(seed)

    def group(name: str) -> str:
        return next((start for start in GROUPS if name.startswith(start)), name.split("::")[0])

    def mixed(parts: list[list[str]]) -> list[list[str]]:
        rng.shuffle(parts)
        return parts

    order = []
    for part in mixed([[*part] for _, part in groupby(sorted(names, key=group), key=group)]):
        for tests in mixed([[*f] for _, f in groupby(sorted(part), lambda n: n.split("::")[0])]):
            rng.shuffle(tests)
            order += tests
    return order
