"""`ldp`: what passive parties see depends on a label through the noisy numbers alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from hedgerow.errors import TableError
from hedgerow.methods.fedxgboost.asking import Asking
from hedgerow.methods.fedxgboost.model import merged
from hedgerow.methods.fedxgboost.protections.plain import LdpActive, noisy_labels
from hedgerow.methods.fedxgboost.run import agreement_for, vertical_role
from hedgerow.model.exact import BITS
from hedgerow.model.losses import loss_for
from hedgerow.model.statement import Statement
from hedgerow.privacy.noise import mechanisms
from hedgerow.protocol.roles import MemoryStore
from hedgerow.testing import noise_off
from tests.methods.fedxgboost.tables import schema_of, settings, shares, train, whole
from tests.sessions import run_roles

TASKS = ("binary", "multiclass", "regression")


@contextmanager
def fixed(monkeypatch: pytest.MonkeyPatch, drawn: dict[str, Any]) -> Iterator[None]:
    """Mechanisms that return the same whatever they are given, and note what that was."""

    def perturb(values: Any, epsilon: float, mechanism: str) -> Any:
        drawn.setdefault("perturbed", []).append((values.copy(), epsilon, mechanism))
        return np.linspace(-1, 1, len(values.ravel())).reshape(values.shape)

    def labels(values: Any, classes: int, epsilon: float) -> Any:
        drawn.setdefault("labels", []).append((values.copy(), epsilon))
        return np.arange(len(values)) % classes

    monkeypatch.setattr(mechanisms, "perturb", perturb)
    monkeypatch.setattr(mechanisms, "randomised_labels", labels)
    yield


class Tap:
    """A party's role whose messages are written down."""

    def __init__(self, role: Any) -> None:
        self._role, self.messages = role, []

    def step(self, messages: Any) -> Any:
        taken = self._role.step(messages)
        self.messages.append((dict(taken.messages), taken.report))
        return taken


def messages_of(table: dict[str, Any], task: str, **further: Any) -> list[Any]:
    """All that the active party writes in a run without ids."""
    chosen = settings(protection="ldp", n_trees=2, **further)
    agreement = agreement_for(schema_of(task), chosen, "local")
    done = run_roles(
        agreement, vertical_role, shares(table, task), schema_of(task), changed={"bank": Tap}
    )
    messages: list[Any] = done.roles["bank"].messages
    return messages[3:]  # the first ones hold a salt


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("mechanism", ["labels-once", "duchi"])
@pytest.mark.parametrize("order", [1, 2])
def test_with_the_noise_held_fixed_no_message_depends_on_a_label(
    task: str, mechanism: str, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = whole(200, task)
    other = {**one, "label": one["label"][::-1]}
    assert not np.array_equal(one["label"], other["label"])
    drawn: dict[str, Any] = {}
    with fixed(monkeypatch, drawn):
        first = messages_of(one, task, mechanism=mechanism, order=order)
        assert first == messages_of(other, task, mechanism=mechanism, order=order)
    assert drawn  # labels went somewhere


@pytest.mark.parametrize(("task", "outputs"), [("binary", 1), ("multiclass", 3), ("regression", 1)])
def test_the_epsilons_of_all_draws_add_up_to_that_of_the_run(
    task: str, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, Any] = {}
    with fixed(monkeypatch, drawn):
        messages_of(whole(200, task), task, mechanism="duchi", epsilon=3.0)
    spent = [epsilon * len(values) / 200 for values, epsilon, _ in drawn["perturbed"]]
    assert len(spent) == 2  # one draw a tree, of all outputs
    assert sum(spent) == pytest.approx(3.0)
    assert all(np.abs(values).max() <= 1 for values, _, _ in drawn["perturbed"])
    drawn.clear()
    with fixed(monkeypatch, drawn):
        messages_of(whole(200, task), task, mechanism="labels-once", epsilon=3.0)
    once = [call[1] for calls in drawn.values() for call in calls]
    assert once == [3.0]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("mechanism", ["labels-once", "laplace", "piecewise", "hybrid"])
def test_without_noise_it_is_the_exact_model_up_to_rounding(task: str, mechanism: str) -> None:
    table = whole(300, task)
    further = {"n_trees": 1, "max_depth": 2}
    with noise_off():
        noisy, _ = train(
            shares(table, task), schema_of(task),
            settings(protection="ldp", mechanism=mechanism, epsilon=20.0, **further),
        )  # fmt: skip
    assert noisy["bank"].statement.guarantee == "not private"
    assert "switched off for a test" in noisy["bank"].statement.words()
    exact, _ = train(shares(table, task), schema_of(task), settings(**further))
    one, two = (merged(list(parts.values())).decision_function(table) for parts in (noisy, exact))
    assert np.abs(one - two).max() < 1e-4


def test_labels_randomised_once_are_unbiased() -> None:
    n = 40_000
    target = np.repeat([0.0, 1.0], n // 2)
    found = noisy_labels(target, loss_for(schema_of("binary").label), 1.0)[:, 0]
    # Two outputs, (1 - q) / (1 - 2 q) and -q / (1 - 2 q) with q = 1 / (1 + e): deviation 0.96.
    limit = 5.5 * 0.96 / np.sqrt(n / 2)
    assert abs(found[: n // 2].mean()) < limit
    assert abs(found[n // 2 :].mean() - 1) < limit


def test_hessians_follow_from_scores_alone() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 1)) * 3
    loss = loss_for(schema_of("binary").label)
    found = []
    for target in (np.zeros(50), np.ones(50)):
        side = LdpActive(Asking(()), settings(protection="ldp"), loss, target)
        found.append(side.numbers(scores)[:, 1])
    assert np.array_equal(*found)
    p = 1 / (1 + np.exp(-scores[:, 0]))
    assert np.abs(found[0] * 2.0**-BITS - p * (1 - p)).max() < 1e-6


def test_a_run_that_was_begun_draws_no_second_noise() -> None:
    chosen = settings(protection="ldp")
    agreement = agreement_for(schema_of(), chosen, "some-run")
    store, rows = MemoryStore(), shares(whole(100))["bank"]
    vertical_role("bank", rows, schema_of(), agreement, store).step({})
    with pytest.raises(TableError, match="begun before"):
        vertical_role("bank", rows, schema_of(), agreement, store).step({})
    other = dataclasses.replace(agreement, run="another-run")
    vertical_role("bank", rows, schema_of(), other, store).step({})


def test_the_statement_promises_labels_and_nothing_else() -> None:
    parts, _ = train(
        shares(whole(200)), schema_of(), settings(protection="ldp", epsilon=2.0, n_trees=1)
    )
    statement = parts["bank"].statement
    assert (statement.guarantee, statement.epsilon) == ("label", 2.0)
    words = statement.words()
    assert "LABELS ONLY" in words
    assert "Every further run on these labels adds its own epsilon" in words
    assert "epsilon = 2" in words
    assert Statement.from_dict(statement.to_dict()) == statement
    assert statement.promise() == "label epsilon = 2"
