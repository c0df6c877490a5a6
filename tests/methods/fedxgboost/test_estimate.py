"""The estimate of a Paillier run bounds what the run does, and is told before anything is sent."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from hedgerow import VerticalBoostingClassifier
from hedgerow.engines.local_session import local_session
from hedgerow.errors import FitWarning
from hedgerow.estimators import vertical
from hedgerow.methods.fedxgboost import estimate as module
from hedgerow.methods.fedxgboost import paillier
from hedgerow.methods.fedxgboost.estimate import (
    OPERATIONS,
    PaillierEstimate,
    counts_of,
    duration,
    estimate,
)
from hedgerow.methods.fedxgboost.run import agreement_for, vertical_role
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from tests.methods.fedxgboost.tables import OWNERS, schema_of, shares, whole

ROWS, DEPTH = 160, 3


def settings_with(**values: Any) -> VerticalSettings:
    fixed = {"owners": OWNERS, "active": "bank", "ids": "agreed", "key_bits": 1024}
    return VerticalSettings(**{**fixed, "n_trees": 1, "max_depth": DEPTH, **values})


def test_counts_bound_the_operations_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encryptions exactly; additions, closed and decrypted sums at most, and not by far more."""
    schema, tables, done = schema_of(), shares(whole(ROWS)), Counter[str]()
    real = {name: getattr(paillier, name) for name in ("encrypt", "add_up", "close", "open_sums")}

    def encrypt(*given: Any) -> Any:
        made = real["encrypt"](*given)
        done["encrypt"] += made.shape[0] * made.shape[1]
        return made

    def add_up(key: Any, made: Any, cells: Any, *given: Any) -> Any:
        done["add"] += int((cells >= 0).sum()) * made.shape[1]
        return real["add_up"](key, made, cells, *given)

    def close(*given: Any) -> Any:
        closed = real["close"](*given)
        done["close"] += len(closed)
        return closed

    def open_sums(key: Any, closed: Any, *given: Any) -> Any:
        done["decrypt"] += len(closed)
        return real["open_sums"](key, closed, *given)

    for name, counting in (
        ("encrypt", encrypt), ("add_up", add_up), ("close", close), ("open_sums", open_sums),
    ):  # fmt: skip
        monkeypatch.setattr(paillier, name, counting)
    settings = settings_with()
    agreement = agreement_for(schema, settings, "run")
    local_session(agreement, vertical_role, tables, schema)
    most = counts_of(schema, settings, ROWS)
    assert done["encrypt"] == most["encrypt"] == ROWS
    for name in ("add", "close", "decrypt"):
        assert 0.3 * most[name] <= done[name] <= most[name], name


def test_time_grows_with_rows_and_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "rates_of", lambda *_: dict.fromkeys(OPERATIONS, 0.001))
    schema = schema_of()
    one = estimate(schema, settings_with(), 10_000)
    assert estimate(schema, settings_with(n_trees=5), 10_000).cpu_seconds == pytest.approx(
        5 * one.cpu_seconds
    )
    assert 1.9 * one.cpu_seconds < estimate(schema, settings_with(), 20_000).cpu_seconds
    assert sum(one.shares.values()) == pytest.approx(1)
    assert one.rows_known
    unknown = estimate(schema, settings_with())
    assert not unknown.rows_known
    assert "each 100,000 common rows" in unknown.words()


def test_rates_are_measured_on_this_machine() -> None:
    found = estimate(schema_of(), settings_with(), 1000)
    assert found.cpu_seconds > 0
    assert set(found.shares) == set(OPERATIONS)


@pytest.mark.parametrize(("seconds", "text"), [(3.2, "3 s"), (720, "12 min"), (34_200, "9.5 h")])
def test_durations_are_told_in_their_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


class _Sent(Exception):
    pass


def fitted(monkeypatch: pytest.MonkeyPatch, cpu_seconds: float, **given: Any) -> None:
    """A fit up to its first message, which is an error here."""
    shares = dict.fromkeys(OPERATIONS, 0.2)
    told = PaillierEstimate(100, True, 1, cpu_seconds, 1, shares)
    monkeypatch.setattr(module, "estimate", lambda *_: told)

    def sent(*_: Any, **__: Any) -> None:
        raise _Sent

    monkeypatch.setattr(vertical, "local_session", sent)
    X = np.linspace(-1, 1, 200).reshape(-1, 2)
    model = VerticalBoostingClassifier(bounds=(-1, 1), classes=[0, 1], **given)
    with pytest.raises(_Sent):
        model.fit(X, (X[:, 0] > 0).astype(int), owners={"x1": "shop"}, active="bank")


def test_a_long_fit_warns_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vertical, "LONG_ROWS", 1)
    with pytest.warns(FitWarning, match=r"about 20 min of CPU .* Nothing was sent yet"):
        fitted(monkeypatch, 1200.0)


def test_a_short_fit_and_other_protections_do_not_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vertical, "LONG_ROWS", 1)
    fitted(monkeypatch, 30.0)
    fitted(monkeypatch, 1200.0, protection="none")


def test_verbose_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted(monkeypatch, 30.0, verbose=1)
    assert "[hedgerow] Paillier will take about 30 s of CPU" in capsys.readouterr().out
