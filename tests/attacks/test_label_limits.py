"""A coordinator that asks for noisy labels again and again: a party's limits count them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hedgerow.coordinator.federation import Federation, RefusedBy
from hedgerow.coordinator.sessions import Session
from hedgerow.deployment.roles import role_factories
from hedgerow.engines.local import local_federation
from hedgerow.methods.fedxgboost.run import agreement_for
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import Budget, label_spending
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
