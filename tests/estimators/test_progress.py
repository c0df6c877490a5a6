"""What fits print: nothing, unless `verbose` asks for it; then a few lines, none about rows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from hedgerow import (
    PrivateBoostingClassifier,
    SimilarityBoostingClassifier,
    VerticalBoostingClassifier,
)
from hedgerow.errors import SettingsError
from hedgerow.estimators.base import Estimator

N = 400
X = np.random.default_rng(5).uniform(-1, 1, (N, 2))
Y = (X[:, 0] > 0).astype(int)
FACTS: dict[str, Any] = {"bounds": (-1, 1), "classes": [0, 1]}
BOOSTING = PrivateBoostingClassifier(**FACTS, method="random-trees", n_trees=30)
SIMILAR = SimilarityBoostingClassifier(**FACTS, n_trees=30, max_depth=2)
VERTICAL = VerticalBoostingClassifier(**FACTS, n_trees=30, max_depth=2, protection="none")
FITS: list[tuple[Estimator, dict[str, Any], str]] = [
    (BOOSTING, {}, "release"),
    (SIMILAR, {"parties": np.array(["a", "b"])[np.arange(N) % 2]}, "tree"),
    (VERTICAL, {"owners": {"x1": "shop"}, "active": "bank"}, "tree"),
]
ids = [type(estimator).__name__ for estimator, _, _ in FITS]


@pytest.mark.parametrize(("estimator", "arguments", "what"), FITS, ids=ids)
def test_a_verbose_fit_prints_some_lines_and_a_silent_one_none(
    estimator: Any, arguments: dict[str, Any], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    clone(estimator).fit(X, Y, **arguments)
    assert capsys.readouterr() == ("", "")
    counts = {}
    for verbose in (1, 2):
        clone(estimator).set_params(verbose=verbose).fit(X, Y, **arguments)
        lines = capsys.readouterr().out.splitlines()
        assert all(
            re.fullmatch(rf"\[hedgerow\] {what} \d+ of \d+, [\d.]+ s", s) for s in lines[:-1]
        )
        assert re.fullmatch(r"\[hedgerow\] done: \d+ trees in [\d.]+ s", lines[-1])
        done = [int(s.split()[2]) for s in lines[:-1]]
        assert done == sorted(done)
        assert done[-1] == int(lines[-2].split()[4].rstrip(","))
        assert str(N) not in " ".join(lines)
        counts[verbose] = len(lines)
    assert 5 <= counts[1] <= 11 < counts[2]


def test_a_fit_that_compiles_says_so_once_and_one_that_finds_loops_on_disk_does_not(
    tmp_path: Path,
) -> None:
    program = (
        "import numpy as np; from hedgerow import PrivateBoostingClassifier as P\n"
        "X = np.zeros((200, 2)); y = np.arange(200) % 2\n"
        "for _ in range(2): P(bounds=(-1, 1), classes=[0, 1], method='dp-tr-newton', verbose=1,"
        " settings={'n_trees': 2}).fit(X, y)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for n_lines in (1, 0):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            timeout=800, env=environment,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        assert sum("[hedgerow] compiling loops" in line for line in lines) == n_lines
        assert sum("done" in line for line in lines) == 2


@pytest.mark.parametrize("verbose", [3, -1, "yes", 1.5])
def test_a_verbose_that_means_nothing_is_refused(verbose: Any) -> None:
    with pytest.raises(SettingsError, match=r"0 \(silent\).*Nothing was asked"):
        clone(BOOSTING).set_params(verbose=verbose).fit(X, Y)


def test_names_of_other_libraries_lead_to_it() -> None:
    with pytest.raises(SettingsError, match="verbose"):
        PrivateBoostingClassifier(verbosity=1)  # type: ignore[call-arg]
