"""What came of every test of a run, in a JSON file: for `tests.flaky`.

conftest.py registers this module as a plugin; HEDGEROW_TEST_OUTCOMES names the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

FILE = os.environ.get("HEDGEROW_TEST_OUTCOMES")
_outcomes: dict[str, dict[str, Any]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    outcome = _outcomes.setdefault(report.nodeid, {"failed": False, "why": "", "used": []})
    outcome["used"] = [u for u in dict(report.user_properties).get("used", "").split(",") if u]
    if report.failed:
        outcome |= {"failed": True, "why": outcome["why"] + report.longreprtext}


def pytest_sessionfinish(session: pytest.Session) -> None:
    if FILE is not None and not hasattr(session.config, "workerinput"):  # not in xdist's processes
        Path(FILE).write_text(json.dumps(_outcomes), "utf-8")
