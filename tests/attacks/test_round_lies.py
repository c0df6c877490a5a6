"""A coordinator that bends plans of pure questions, their rounds and samples gains nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import pytest

from hedgerow.engines.local import local_federation
from hedgerow.errors import LedgerError, PlanError
from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.party.party import Party
from hedgerow.privacy.accounting.budget import Slot
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.accounting.pure import MOST_KINDS, _excess, _losses_of, _merged, composed
from hedgerow.privacy.accounting.rounds import Branches, Round
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.noise.poisson_sampling import stored_key
from hedgerow.privacy.settings import Privacy, PrivateTreeSettings
from hedgerow.protocol import messages
from hedgerow.queries import NO_TREES, ColumnCounts, LeafAverages, size_of
from hedgerow.queries.calibration import noise_for
from hedgerow.queries.gradients import Gradients
from tests.attacks.rig import SCHEMA, Rig, some_rows, word

COUNTS = replace(ColumnCounts.of(SCHEMA, together=True), price=0.05)


def pure_plan(trust: str, accounting: str = "exact", **changes: Any) -> Plan:
    """One round of counts of every column."""
    delta = 1e-9 if accounting == "exact" else 0.0
    privacy = Privacy(0.2, delta, trust, accounting)  # type: ignore[arg-type]
    slots = (Slot("counts", COUNTS.kind, 0.0, size_of(COUNTS)),)
    branches = Branches(0.01, (Round(1, 0.2),))
    budget = PathBudget(slots, privacy, branches=branches)
    changed = replace(budget, **changes)
    return Plan("lies", SCHEMA.hash, "private-tree", PrivateTreeSettings(), 1, changed)


def opened(rig: Rig, document: dict[str, Any]) -> str:
    values = {"plan": document, "roster": rig.roster.hash, "nonce": token_hex(16)}
    return word(rig.send("a", messages.plain("open", values)))


@pytest.mark.parametrize("accounting", ["exact", "pure"])
def test_pure_questions_are_not_asked_where_nobody_is_trusted(accounting: str) -> None:
    """A party would add one share of a Laplace that nobody else completes, however it is counted"""
    rig = Rig(trust="nobody", opened=False)
    document = pure_plan("parties", accounting).to_dict()
    document["privacy"]["trust"] = "nobody"
    assert opened(rig, document) == "bad-message"
    assert not rig.ledgers["a"].lines("a", "reserve")
    plan = pure_plan("parties")
    object.__setattr__(plan.budget, "privacy", replace(plan.privacy, trust="nobody"))
    with pytest.raises(PlanError, match="noise of its own"):
        noise_for(COUNTS, 0.0, plan, SCHEMA)


@pytest.mark.parametrize("trust", ["parties", "nobody", "coordinator"])
@pytest.mark.parametrize("colluding", [-(10**6), 0, 2])
def test_nobody_says_how_many_share_the_noise(trust: str, colluding: int) -> None:
    """With -10^6 parties that may leak, a share of a Laplace would be nothing at all."""
    rig = Rig(trust=trust)
    assert word(rig.ask("a", colluding=colluding)) == "too-little-noise"
    assert word(rig.ask("a")) == "answer"


def test_a_plan_of_many_different_rounds_takes_no_memory_and_little_time() -> None:
    """Two groups of rounds would pair 10^10 privacy losses, and a million kinds take for ever."""
    one, n = 1e-4, 100_000
    together = composed([(one, 2 * n)], 1e-6)
    apart = composed([(one, n), (one * (1 + 1e-12), n)], 1e-6)  # the same, in effect
    assert together <= apart * (1 + 1e-9) <= together * 1.02
    kinds = tuple(Round(1, 1e-6 * (1 + k)) for k in range(MOST_KINDS + 1))
    slots = pure_plan("parties").slots
    pure_plan("parties", slots=slots * MOST_KINDS, branches=Branches(0.01, kinds[1:]))
    document = pure_plan("parties").to_dict()
    document["slot"][0]["repeat"] = len(kinds)
    document["branches"] = Branches(0.01, kinds).to_dict()
    rig = Rig(opened=False)
    assert opened(rig, document) == "bad-message"


@pytest.mark.parametrize(("n", "cost"), [(3, 0.5), (40, 0.1), (3000, 0.01)])
def test_merged_losses_never_promise_more(n: int, cost: float) -> None:
    """Rounding of losses, up to a grid of any fineness, only adds to delta."""
    losses, chances = _losses_of([(cost, n)])
    for epsilon in (0.1 * n * cost, 0.3 * n * cost, 0.0):
        exact = _excess(losses, chances, epsilon)
        for most in (3, 4, 10, 1000):
            assert exact <= _excess(*_merged(losses, chances, most), epsilon) * (1 + 1e-9)


def sampled_rig(seed: bytes, ledger: Ledger | None = None, persons: bool = False) -> Rig:
    """One party that samples with a known key, and two rounds that ask half of its rows."""
    rig = Rig(("a",), trust="coordinator", opened=False)
    rig.ledgers["a"] = ledger or rig.ledgers["a"]
    rows = some_rows(400, 0)
    rows = replace(rows, persons=np.zeros(400, np.uint64)) if persons else rows
    party = Party("a", rows, SCHEMA, rig.ledgers["a"], sampling_secret=lambda: seed)
    rig.parties["a"] = party
    rig.roster = replace(rig.roster, parties=(("a", party.identity.public),))
    party.pin(rig.roster)
    slots = pure_plan("coordinator").slots * 3
    branches = Branches(0.01, (Round(2, 0.2, 0.5), Round(1, 0.1, 0.5)))
    rig.plan = pure_plan("coordinator", slots=slots, branches=branches)
    rig.open(rig.plan)
    return rig


def drawn(rig: Rig, slot: int) -> list[int]:
    assert word(rig.ask("a", query=COUNTS, slot=slot)) == "answer"
    sample = rig.parties["a"]._scores._sample  # type: ignore[attr-defined]
    assert sample is not None
    return sample.index.tolist()


def test_no_two_rounds_and_no_two_ledgers_share_their_samples(tmp_path: Path) -> None:
    """The same plan over another ledger is another run, whose rows must be drawn anew."""
    seed = bytes(32)
    with Ledger.open(tmp_path / "ledger") as ledger:
        rig = sampled_rig(seed, ledger)
        first, second = drawn(rig, 0), drawn(rig, 2)
        assert drawn(sampled_rig(seed, ledger), 1) == first  # restarted in the first round
    other = drawn(sampled_rig(seed), 0)
    for one, two in ((first, second), (first, other), (second, other)):
        assert 50 < len(set(one) & set(two)) < 150  # 100 expected of independent ones


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o606])
def test_samples_that_others_may_know_are_not_drawn(tmp_path: Path, mode: int) -> None:
    """Whoever put a key there, or can read it, would see the questions without their sampling."""
    file = tmp_path / "ledger.coins"
    file.write_bytes(bytes(32))
    file.chmod(mode)
    with Ledger.open(tmp_path / "ledger") as ledger:
        with pytest.raises(LedgerError, match="others may open it"):
            local_federation({"a": some_rows(10, 0)}, SCHEMA, ledger)
        assert not ledger.lines()
        file.chmod(0o600)
        assert stored_key(file) == bytes(32)
        local_federation({"a": some_rows(10, 0)}, SCHEMA, ledger)


def test_rows_are_drawn_one_by_one_where_a_row_is_what_is_protected() -> None:
    """If all shared one draw, a row that joined would be in the sample whenever the others are."""
    assert 100 < len(drawn(sampled_rig(bytes(32), persons=True), 0)) < 300


def test_a_ledger_that_understates_a_pure_run_is_found_out() -> None:
    """What holds without any delta is counted too, where all runs are pure."""
    plan, ledger = pure_plan("coordinator", "pure"), Ledger.in_memory()
    Reservation(ledger, plan)
    verify(ledger)
    line, forged = ledger.lines(kind="reserve")[0], Ledger.in_memory()
    forged.append(COORDINATOR, "reserve", plan.run, values={**line.values, "pure": 0.001})
    with pytest.raises(LedgerError, match="another pure"):
        verify(forged)


@pytest.mark.parametrize("trust", ["coordinator", "parties", "nobody"])
def test_plans_of_gaussian_questions_choose_nothing_and_take_no_ratio(trust: str) -> None:
    """There is no Gaussian noise for a choice, or for a ratio of exact sums."""
    gradients, tree = Gradients("logistic", NO_TREES), GrowingTree().structure()
    query = LeafAverages(tree, gradients, 1.0, "plain")
    rig = Rig(trust=trust)
    with pytest.raises(PlanError, match="pure plan"):
        noise_for(query, 0.5, rig.plan, SCHEMA)
    noise_for(replace(query, rule="sum-and-count"), 0.5, rig.plan, SCHEMA)


def test_rounds_in_turn_do_not_bury_what_a_person_is_told() -> None:
    rounds = (Round(1, 0.01), Round(1, 0.02, 0.5)) * 5000
    told = Branches(0.01, rounds).words(1)
    assert len(told) == 3
    assert all("5,000 rounds" in line for line in told[:2])
