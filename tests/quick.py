"""`--quick`: the tests to run while editing. A new file is among them unless LONG names it.

conftest.py takes these hooks over. Left out is what starts processes and waits for them,
repeats draws until a law shows, or trains many models to compare them. `make test` runs everything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONG = (
    "tests/crashes",
    "tests/e2e",
    "tests/engines/dask",
    "tests/engines/nvflare",
    "tests/mutations",
    "tests/statistical",
    "tests/test_documents.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out tests that take long")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A folder that is left out is not even imported, which alone takes long."""
    left_out = config.getoption("--quick") and any(
        collection_path.is_relative_to(ROOT / name) for name in LONG
    )
    return True if left_out else None
