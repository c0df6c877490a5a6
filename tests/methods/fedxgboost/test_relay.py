"""What the coordinator carries between parties of a vertical run: nothing that it can read."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.coordinator.refused import RefusedBy
from hedgerow.coordinator.sessions import Session
from hedgerow.deployment.roles import role_factories
from hedgerow.engines.local import local_federation
from hedgerow.errors import HedgerowError, SettingsError
from hedgerow.estimators.vertical import VerticalBoostingClassifier
from hedgerow.methods.fedxgboost.run import agreement_for
from hedgerow.methods.registry import plan_for
from hedgerow.packing import unpack
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Message
from tests.methods.fedxgboost.tables import OWNERS, schema_of, settings, shares, whole


def session(**further: Any) -> tuple[Session, list[bytes], Any]:
    tables = shares(whole(200))
    roles = role_factories()
    ledger = Ledger.in_memory()
    federation = local_federation(
        tables, schema_of(), ledger, trust="coordinator", roles=roles, packed=True, **further
    )
    carried: list[bytes] = []
    engine = federation.engine  # type: ignore[attr-defined]
    ask = engine.ask

    def listening(names: Any, message: bytes, seconds: float) -> Any:
        replies = ask(names, message, seconds)
        carried.append(message)
        carried.extend(reply.body or b"" for reply in replies.values())
        return replies

    engine.ask = listening
    agreement = agreement_for(schema_of(), settings(n_trees=1), "some-run")
    return Session(federation, agreement, ledger), carried, federation


def test_a_captured_message_is_unreadable_to_the_coordinator() -> None:
    driven, carried, _ = session()
    driven.run()
    messages = [Message.from_bytes(raw) for raw in carried]
    sealed = [
        array.tobytes()
        for message in messages
        if message.type == "letters"
        for name, array in unpack(message.body)[1].items()
        if name.startswith("letter")
    ]
    assert len(sealed) > 10
    assert max(len(one) for one in sealed) > 200 * 2 * 4  # the numbers of all rows are among them
    for one in sealed:
        assert b'"kind"' not in one
        with pytest.raises(HedgerowError):
            MaskKeys().unseal(driven._announced["bank"].key, "any", "bank", one)
    assert b"some-run" in b"".join(carried)  # what is public can be read


def test_limits_name_what_a_party_takes_part_in() -> None:
    driven, _, _ = session(limits=Limits(roles=frozenset({"fedxgboost-paillier"})))
    with pytest.raises(RefusedBy, match="not-allowed"):
        driven.run()


def test_a_party_with_some_columns_answers_no_sums() -> None:
    _, _, federation = session()
    plan = plan_for(schema_of(), Privacy(1.0, 1e-5, trust="coordinator"), "dp-rf")
    with pytest.raises(HedgerowError, match="some of the columns"):
        federation.open(plan)


def test_an_estimator_trains_over_parties_that_exist() -> None:
    """The same model as in one process, where every owner hands over its part."""
    table = whole(200)
    federation = local_federation(
        shares(table), schema_of(), trust="coordinator", roles=role_factories()
    )
    own = {"schema": schema_of(), "protection": "none", "n_trees": 2, "max_depth": 2}
    here = VerticalBoostingClassifier(**own).fit(table, owners=OWNERS, active="bank")
    apart = VerticalBoostingClassifier(**own, settings={"ids": "agreed"})
    ledger = Ledger.in_memory()
    apart.set_params(ledger=ledger).fit_federation(federation, OWNERS, "bank")
    assert apart.model_ == here.model_
    (line,) = ledger.lines(kind="disclose")
    assert line.values["agreement"]["program"] == "fedxgboost-none-merged"
    with pytest.raises(SettingsError, match="with their parties"):
        apart.predict_jointly(table)
