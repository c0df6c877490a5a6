"""A coordinator that asks for noisy labels again and again: a party's limits count them."""

from __future__ import annotations

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.refused import RefusedBy
from hedgerow.coordinator.sessions import Session
from hedgerow.deployment.roles import role_factories
from hedgerow.engines.local import local_federation
from hedgerow.methods.fedxgboost.run import agreement_for
from hedgerow.party.limits import Limits
from hedgerow.party.sessions import PartySessions
from hedgerow.privacy.ledger.labels import label_spending
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import Budget
from hedgerow.protocol.roles import Agreement
from tests.methods.fedxgboost.tables import schema_of, settings, shares, whole


def _federation(ledger: Ledger, **ceilings: float) -> Federation:
    named = {name: Budget(epsilon, 1e-6) for name, epsilon in ceilings.items()}
    return local_federation(
        shares(whole(60)), schema_of(), ledger, trust="coordinator",
        limits=Limits(roles=frozenset({"fedxgboost-ldp"}), **named),  # type: ignore[arg-type]
        roles=role_factories(),
    )  # fmt: skip


def _agreement(run: str, **further: Any) -> Agreement:
    own = {"protection": "ldp", "epsilon": 1.0, "n_trees": 1, "max_depth": 1, **further}
    return agreement_for(schema_of(), settings(**own), run)


@pytest.mark.parametrize("ceiling", ["budget", "per_month"])
def test_runs_under_new_names_add_up_to_no_more_than_a_party_allows(ceiling: str) -> None:
    ledger = Ledger.in_memory()
    federation = _federation(ledger, **{ceiling: 2.5})
    for run in ("one", "two"):
        Session(federation, _agreement(run), ledger).run()
    with pytest.raises(RefusedBy, match="over-limits"):
        Session(federation, _agreement("three"), ledger).run()
    Session(federation, _agreement("four", epsilon=0.5), ledger).run()
    assert label_spending(ledger, "bank") == label_spending(ledger, "bank", monthly=True) == 2.5
    assert label_spending(ledger, "shop") == 0  # it has no labels


def test_one_run_costs_no_more_than_a_party_allows_for_each() -> None:
    ledger = Ledger.in_memory()
    with pytest.raises(RefusedBy, match="over-limits"):
        Session(_federation(ledger, per_run=2.0), _agreement("one", epsilon=20.0), ledger).run()
    assert ledger.lines(kind="disclose") == []


@pytest.mark.parametrize("spends", [{}, {"bank": 0.1}, {"shop": 1.0}, {"bank": 1.0, "shop": 1.0}])
def test_an_agreement_that_hides_what_labels_pay_is_refused(spends: dict[str, float]) -> None:
    ledger = Ledger.in_memory()
    hiding = replace(_agreement("one"), spends=spends)
    with pytest.raises(RefusedBy, match="not readable"):
        Session(_federation(ledger, per_run=2.0), hiding, ledger).run()


def test_noisy_labels_of_one_run_are_not_drawn_twice_for_one_price() -> None:
    """Another process, with the same ledger: nothing but the ledger knows that the run was."""
    ledger, agreement = Ledger.in_memory(), _agreement("one")
    Session(_federation(ledger), agreement, ledger).run()
    with pytest.raises(RefusedBy, match="old-attempt"):
        Session(_federation(ledger), agreement, ledger).run()
    assert label_spending(ledger, "bank") == 1.0


def test_two_agreements_under_way_do_not_both_take_what_is_left() -> None:
    """Both are opened before either is entered; the second is refused where it is to be entered."""
    ledger = Ledger.in_memory()
    federation = _federation(ledger, budget=1.5)
    first, second = (Session(federation, _agreement(run), ledger) for run in ("one", "two"))
    send, between = federation.transport.send, [second]

    def sending(messages: Any, wanted: str, seconds: float) -> Any:
        if wanted == "joined" and between:
            between.pop().run()
        return send(messages, wanted, seconds)

    federation.transport.send = sending  # type: ignore[method-assign]
    with pytest.raises(RefusedBy, match="over-limits"):
        first.run()
    assert label_spending(ledger, "bank") == 1.0


@pytest.mark.parametrize("runs", [("one", "two"), ("one", "one")])
def test_two_processes_do_not_both_enter_what_one_may(
    runs: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each checks its limits before the other has entered anything, if nothing holds it back."""
    check, both = PartySessions._check_fresh, threading.Barrier(2)

    def checked(self: PartySessions, agreement: Agreement) -> None:
        check(self, agreement)
        if agreement.spends.get(self._name) and agreement.run in joining:
            with suppress(threading.BrokenBarrierError):
                both.wait(timeout=1)

    monkeypatch.setattr(PartySessions, "_check_fresh", checked)
    joining: set[str] = set()
    ready = threading.Barrier(2)

    def run(name: str) -> str:
        with Ledger.open(tmp_path / "a.ledger") as ledger:
            federation = _federation(ledger, budget=1.5)
            first = _agreement(secrets.token_hex(4), epsilon=0.1)  # so that all keys are known
            Session(federation, first, ledger).run()
            send = federation.transport.send
            ready.wait(timeout=60)

            def sending(messages: Any, wanted: str, seconds: float) -> Any:
                if wanted == "joined":
                    joining.add(name)
                return send(messages, wanted, seconds)

            federation.transport.send = sending  # type: ignore[method-assign]
            try:
                Session(federation, _agreement(name), ledger).run()
            except RefusedBy as refused:
                return refused.word
        return "done"

    with ThreadPoolExecutor(2) as pool:
        words = list(pool.map(run, runs))
    assert sorted(words) == ["done", "over-limits" if runs[0] != runs[1] else "old-attempt"]
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        assert label_spending(ledger, "bank") == pytest.approx(1.2)
