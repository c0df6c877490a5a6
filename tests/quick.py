"""`--quick`: the tests to run while editing. A new file is among them unless LONG names it.

conftest.py takes these hooks over. In are the tests that lie as the source does, the contracts and
the golden files. Left out are the suites that look at everything together (attacks, comparisons
with other implementations, crashes, laws of noise, mutations, sites), single files that start
processes and wait for them, build packages or read large tables, and of the widest contracts the
further labels and grids (FURTHER). `make test` runs everything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONG = (
    "tests/attacks",
    "tests/audit/test_one_run.py",
    "tests/cli/test_demo.py",
    "tests/cli/test_holdout.py",
    "tests/cli/test_results.py",
    "tests/contracts/test_extras.py",
    "tests/contracts/test_release.py",
    "tests/contracts/test_replay.py",
    "tests/contracts/test_weights.py",
    "tests/coordinator/test_traffic.py",
    "tests/crashes",
    "tests/data/test_memory.py",
    "tests/data/test_persons.py",
    "tests/deployment/console/test_in_a_browser.py",
    "tests/deployment/console/test_pages.py",
    "tests/deployment/console/test_story.py",
    "tests/deployment/test_memory.py",
    "tests/deployment/test_processes.py",
    "tests/deployment/test_trial.py",
    "tests/deployment/test_warming.py",
    "tests/e2e",
    "tests/engines/dask",
    "tests/engines/grpc/test_knocking.py",
    "tests/engines/grpc/test_limits.py",
    "tests/engines/grpc/test_memory.py",
    "tests/estimators/test_blocks.py",
    "tests/estimators/test_overlapping.py",
    "tests/estimators/test_progress.py",
    "tests/estimators/test_searches.py",
    "tests/export/test_real_tables.py",
    "tests/inspection/test_report_in_a_browser.py",
    "tests/methods/fedxgboost/test_boost.py",
    "tests/model/test_splitting.py",
    "tests/mutations",
    "tests/oracle",
    "tests/privacy/ledger/test_sharing.py",
    "tests/simulation",
    "tests/statistical",
    "tests/test_documents.py",
    "tests/test_flaky.py",
    "tests/test_notebooks.py",
    "tests/test_quick.py",
    "tests/test_tasks.py",
)
# Of files that try every kind of label, and grids of every fineness: what names of tests have in
# them that look at one more of what others look at.
FURTHER = {
    "tests/contracts/test_attacks.py": ("softmax-4", "softmax-7"),
    "tests/contracts/test_queries.py": (
        "softmax-4", "softmax-7", "quantile-0.9", "-17]", "-20]", "-26]",
    ),
}  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out tests that take long")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A folder that is left out is not even imported, which alone takes long."""
    left_out = config.getoption("--quick") and any(
        collection_path.is_relative_to(ROOT / name) for name in LONG
    )
    return True if left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--quick"):
        return
    left_out = [item for item in items if _is_further(item.nodeid)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not _is_further(item.nodeid)]


def _is_further(name: str) -> bool:
    file, _, test = name.partition("::")
    return any(part in test for part in FURTHER.get(file, ()))
