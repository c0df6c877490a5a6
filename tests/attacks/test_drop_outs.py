"""Parties that vanish and return: nothing is released uncharged, and the run goes on or resumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from hedgerow import Ledger, local_federation
from hedgerow.coordinator.federation import Federation, Reply
from hedgerow.coordinator.gate import Gate
from hedgerow.engines.local import PackedEngine
from hedgerow.errors import Refused, SumFailed
from hedgerow.methods.maddock.boosting import grow
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.messages import Ask, Message
from hedgerow.queries import LabelSums
from hedgerow.queries.calibration import noise_for
from hedgerow.testing import noise_off
from tests.attacks.rig import SCHEMA, Packed, some_rows
from tests.privacy.accounting.test_priced_slots import plan_of


class Flaky(Packed):
    """A local engine in which chosen parties do not answer for a while."""

    def __init__(self, inner: PackedEngine) -> None:
        super().__init__(inner)
        self.gone: set[str] = set()
        self.asks = 0
        self.lose: dict[int, set[str]] = {}  # number of the ask -> who is gone from then on
        self.after_answering = False

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        if Message.from_bytes(message).type == "ask":
            self.asks += 1
            self.gone = self.lose.get(self.asks, self.gone)
        present = [name for name in names if name not in self.gone or self.after_answering]
        replies = super().ask(present, message, timeout_seconds)
        lost = {name: Reply(None, "timed out") for name in names if name in self.gone}
        return {**replies, **lost}


def make(
    n: int, trust: str = "parties", spare: int = 1, ledger: Ledger | None = None
) -> tuple[Federation, Flaky, Plan]:
    tables = {f"party-{i}": some_rows(60 + i, i) for i in range(n)}
    federation = local_federation(tables, SCHEMA, ledger, trust=trust)
    engine = Flaky(federation.engine)  # type: ignore[arg-type]
    federation.engine = engine
    privacy = Privacy(5.0, 1e-6, trust, spare=spare)  # type: ignore[arg-type]
    plan = plan_for(
        SCHEMA, privacy, "random-trees", settings={"n_trees": 6, "max_depth": 2}, seed=3
    )
    return federation, engine, plan


def books(ledger: Ledger, *others: Ledger | None) -> None:
    for book in (ledger, *others):
        if book is not None:
            verify(book)


@pytest.mark.parametrize("after_answering", [False, True])
def test_four_parties_lose_one_and_go_on(after_answering: bool) -> None:
    federation, engine, plan = make(4)
    engine.lose = {3: {"party-1"}}
    engine.after_answering = after_answering
    ledger = Ledger.in_memory()
    model = grow(Gate(federation, plan, ledger))
    assert len(model.trees) == 1 + 6
    assert len(ledger.lines(kind="charge")) == 7 + 1
    assert len(ledger.lines(kind="release")) == 7
    sizes = [len(line.values["receipts"]) for line in ledger.lines(kind="release")]
    assert sizes == [4, 4, 3, 3, 3, 3, 3]
    books(ledger, engine._ledger)


def test_a_second_loss_beyond_the_spares_ends_the_slot_but_not_the_run() -> None:
    federation, engine, plan = make(6, spare=1)
    engine.lose = {3: {"party-1"}, 5: {"party-1", "party-2"}}
    ledger = Ledger.in_memory()
    model = grow(Gate(federation, plan, ledger))
    assert len(model.trees) == 1 + 5  # one batch fewer: its slot was charged and lost
    books(ledger, engine._ledger)


def test_a_slot_priced_during_the_run_is_asked_again_at_the_price_of_a_spare() -> None:
    """The gate itself asks so: what the ledgers would refuse is never tried."""
    federation, engine, _ = make(4)
    plan, query, ledger = plan_of(1, "parties"), LabelSums(2), Ledger.in_memory()
    adaptive = plan.budget.adaptive
    engine.lose = {2: {"party-1"}}
    gate = Gate(federation, plan, ledger)
    gate.release(query)
    release = gate.release(query, 0.9 * adaptive.mu)
    mus = [line.values["mu"] for line in ledger.lines(COORDINATOR, "charge")[1:]]
    assert mus == [0.9 * adaptive.mu, adaptive.retry]
    noise = noise_for(query, adaptive.retry, plan, SCHEMA)
    assert release.unit >= noise.sigmas[0] / 2.0**noise.bits
    books(ledger, engine._ledger)


def test_three_parties_stop_and_resume_when_the_party_returns() -> None:
    federation, engine, plan = make(3)
    with noise_off():
        whole = grow(Gate(federation, replace(plan, run="whole"), Ledger.in_memory()))
    engine.asks, engine.lose = 0, {4: {"party-2"}}
    ledger = Ledger.in_memory()
    with noise_off(), pytest.raises(SumFailed, match=r"only 2 of 3 parties.*party-2.*again"):
        grow(Gate(federation, plan, ledger))
    released = len(ledger.lines(kind="release"))
    assert released == 3
    engine.lose, engine.gone = {}, set()
    with noise_off():
        model = grow(Gate(federation, plan, ledger))
    assert model == whole
    assert len(ledger.lines(kind="release")) == 7
    books(ledger, engine._ledger)


def test_a_party_that_returns_is_probed_for_free_and_takes_part_again() -> None:
    federation, engine, plan = make(4)
    engine.lose = {2: {"party-0"}, 5: set()}
    ledger = Ledger.in_memory()
    grow(Gate(federation, plan, ledger))
    sizes = [len(line.values["receipts"]) for line in ledger.lines(kind="release")]
    assert sizes == [4, 3, 3, 3, 4, 4, 4]
    books(ledger, engine._ledger)


def test_a_restarted_party_rejoins_with_a_new_key_and_rebuilds_its_scores() -> None:
    federation, engine, plan = make(4, spare=2)
    with noise_off():
        whole = grow(Gate(federation, replace(plan, run="whole"), Ledger.in_memory()))
    ask, restarted = engine.ask, []

    def restart(names: Sequence[str], message: bytes, timeout: float) -> dict[str, Reply]:
        if Message.from_bytes(message).type == "ask" and engine.asks == 11 and not restarted:
            old = engine.parties["party-3"]
            fresh = Party("party-3", old._rows, SCHEMA, old._ledger, old.identity)
            fresh.pin(federation.roster)
            engine.parties["party-3"] = fresh
            restarted.append(fresh)
        return ask(names, message, timeout)

    engine.ask = restart  # type: ignore[method-assign]
    ledger = Ledger.in_memory()
    with noise_off():
        model = grow(Gate(federation, plan, ledger))
    assert restarted
    assert model == whole
    sizes = [len(line.values["receipts"]) for line in ledger.lines(kind="release")]
    assert sizes == [4] * 7
    books(ledger, engine._ledger)


class Forgetful(Packed):
    """A local engine in which a party forgets its scores before every question about trees."""

    def __init__(self, inner: PackedEngine, forgets: bool) -> None:
        super().__init__(inner)
        self.forgets = forgets
        self.steps = self.behind = 0  # questions about a step, and replies that ask for trees

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        read = Message.from_bytes(message)
        if read.type == "ask":
            self.steps += Ask.from_body(read.body).query.step_trees > 0
            if self.forgets and read.trees_from:
                self.parties["party-1"]._scores.reset()
        replies = super().ask(names, message, timeout_seconds)
        for reply in replies.values():
            assert reply.body is not None
            self.behind += Message.from_bytes(reply.body).type == "need-trees"
        return replies


def test_a_party_that_forgets_its_scores_before_every_question_changes_nothing() -> None:
    """Questions about a step need the scores before it as well; both are rebuilt from the trees."""
    models = []
    for forgets in (False, True):
        federation, flaky, _ = make(3)
        engine = Forgetful(flaky, forgets)
        federation.engine = engine
        plan = plan_for(SCHEMA, Privacy(500.0, 1e-6, "parties"), seed=3)
        with noise_off():
            gate = Gate(federation, plan, Ledger.in_memory())
            models.append(method_named(plan.method).grow(gate))
        assert engine.steps > 4
        assert (engine.behind > 4) == forgets
    assert models[0] == models[1]


def test_too_few_parties_at_the_start_charge_nothing() -> None:
    federation, engine, plan = make(3)
    engine.gone = {"party-1"}
    ledger = Ledger.in_memory()
    with pytest.raises(SumFailed, match="only 2 of 3"):
        grow(Gate(federation, plan, ledger))
    assert ledger.lines(kind="charge") == []


def test_a_refusal_stops_the_run_and_names_the_party() -> None:
    federation, engine, plan = make(3)
    other = some_rows(10, 5)
    stranger = Party("party-1", other, SCHEMA)
    stranger.identity = engine.parties["party-1"].identity
    engine.parties["party-1"] = stranger
    with pytest.raises(Refused, match=r"party-1 refused \(other-roster\)"):
        grow(Gate(federation, plan, Ledger.in_memory()))


def test_masks_that_do_not_cancel_release_nothing() -> None:
    federation, engine, plan = make(3)
    gate = Gate(federation, plan, ledger := Ledger.in_memory())
    mask = type(engine.parties["party-0"]._keys).mask

    def wrong(self: object, me: str, context: object, size: int) -> np.ndarray:
        return mask(self, me, context, size) + np.uint64(1)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(engine.parties["party-0"]._keys), "mask", wrong)
        with pytest.raises(SumFailed, match="do not cancel"):
            grow(gate)
    assert len(ledger.lines(kind="charge")) == 1
    assert ledger.lines(kind="release") == []
