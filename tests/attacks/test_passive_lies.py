"""A passive party whose encrypted sums are false: whether the run goes on must not show labels."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from hedgerow.errors import SettingsError
from hedgerow.methods.fedxgboost import paillier
from hedgerow.methods.fedxgboost.model import Part
from hedgerow.methods.fedxgboost.protections.encrypted import PaillierPassive
from hedgerow.methods.fedxgboost.run import agreement_for, merged_from_reports, vertical_role
from tests.methods.fedxgboost.tables import schema_of, settings, shares, whole
from tests.sessions import run_roles

N_ROWS = 40
TABLE = whole(N_ROWS)


class Liar:
    """What the shop does to its sums before it sends them; everything that it is told is kept."""

    def __init__(self, role: Any) -> None:
        self._role = role
        self.heard: list[int] = []

    def step(self, messages: Any) -> Any:
        self.heard += [len(message) for message in messages.values()]
        return self._role.step(messages)


def _run(change: Any, monkeypatch: pytest.MonkeyPatch, **further: Any) -> tuple[Liar, Part, Any]:
    honest = PaillierPassive._sums

    def lying(self: PaillierPassive, level: Any, key: Any) -> Any:
        found = honest(self, level, key)
        if len(self.bins.columns) == 2:  # the shop; the phone is honest
            change(self, found, key)
        return found

    monkeypatch.setattr(PaillierPassive, "_sums", lying)
    chosen = settings(n_trees=1, max_depth=1, protection="paillier", **further)
    agreement = agreement_for(schema_of(), chosen, "r")
    lying = {"shop": Liar}
    done = run_roles(agreement, vertical_role, shares(TABLE), schema_of(), changed=lying)
    return done.roles["shop"], done.roles["bank"].part, done.reports


@pytest.mark.parametrize("equal", [True, False])
def test_two_labels_are_not_compared_by_whether_the_run_goes_on(
    equal: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A row in the place of another: sums add up if, and only if, the two have the same label."""
    labels = np.asarray(TABLE["label"])
    assert labels.any()
    i, j = 0, int(np.flatnonzero((labels == labels[0]) == equal)[-1])

    def exchanged(self: PaillierPassive, found: Any, key: Any) -> None:
        for row, less in ((i, False), (j, True)):
            one = self._ciphertexts[row]
            found[0, 0] = paillier._multiplied(key, found[0, 0], one, less, self._processes)

    with caplog.at_level(logging.WARNING):
        _, part, _ = _run(exchanged, monkeypatch)
    assert part.is_active
    assert part.record.get("doubted", []) == ([] if equal else ["shop"])
    assert ("sums of shop do not add up" in caplog.text) is not equal  # at this site alone


def test_a_sum_beyond_its_room_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether what was multiplied runs over may depend on the labels in it."""

    def beyond(self: PaillierPassive, found: Any, key: Any) -> None:
        for _ in range(10):
            found[0, 3] = paillier._multiplied(
                key, found[0, 3], found[0, 3], False, self._processes
            )

    _, part, _ = _run(beyond, monkeypatch)
    assert part.record["doubted"] == ["shop"]


def test_what_is_found_out_stays_in_its_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages of a run are as many and as long, and a merged model says nothing of it."""

    def doubled(self: PaillierPassive, found: Any, key: Any) -> None:
        found[:, 11:] = paillier.add_up(
            key, self._ciphertexts, np.zeros((N_ROWS, 1), np.int64), 1, self._processes
        )

    liar, part, told = _run(doubled, monkeypatch, merge=True)
    monkeypatch.undo()
    honest, _, _ = _run(lambda *_: None, monkeypatch, merge=True)
    assert part.record["doubted"] == ["shop"]
    assert len(liar.heard) == len(honest.heard)
    assert all(b"doubted" not in report for reports in told.values() for report in reports)
    assert "doubted" not in merged_from_reports(told).record


@pytest.mark.parametrize(
    "further", [{"reg_lambda": 0.0, "min_child_weight": 0.0},
                {"reg_lambda": 0.0, "order": 1, "protection": "ldp"}],
)  # fmt: skip
def test_no_sum_can_be_divided_by_nothing(further: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="reg_lambda"):
        settings(**further)
