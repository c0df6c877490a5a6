"""A trust owns its noise shares, how much noise they add up to, and the least set of parties."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hedgerow.errors import FormatError, SettingsError
from hedgerow.model.statement import Statement
from hedgerow.model.trust import TRUSTS, trust_named, usual_trust
from hedgerow.privacy.settings import Privacy


@pytest.mark.parametrize(("n_parties", "colluding"), [(3, 1), (5, 1), (5, 3), (40, 7)])
def test_honest_shares_hold_the_prescribed_noise_and_all_shares_the_stated_one(
    n_parties: int, colluding: int
) -> None:
    trust, honest = TRUSTS["parties"], n_parties - colluding
    share = trust.share(honest, n_rows=1000)
    assert honest * share == pytest.approx(1.0)
    assert n_parties * share == pytest.approx(trust.growth(n_parties, colluding, 1000) ** 2)


def test_local_noise_is_that_of_every_row() -> None:
    trust, sizes = TRUSTS["nobody"], (10, 200, 3)
    variance = sum(trust.share(2, n_rows) for n_rows in sizes)
    assert variance == sum(sizes) == pytest.approx(trust.growth(3, 1, sum(sizes)) ** 2)
    assert trust.row_noise(sum(sizes)) == pytest.approx(2 * variance**0.5)  # replace: twice as far


def test_a_trusted_coordinator_leaves_the_parties_no_noise() -> None:
    trust = TRUSTS["coordinator"]
    assert (trust.share(4, 10), trust.growth(5, 1, 10), trust.row_noise(10)) == (0.0, 1.0, 1.0)


def test_only_masked_sums_need_a_least_set() -> None:
    least = {name: trust.least_set(3, 1, 9) for name, trust in TRUSTS.items()}
    assert least == {"coordinator": 1, "parties": 5, "nobody": 1}
    masked = TRUSTS["parties"]
    assert (masked.least_set(3, 1, 3), masked.least_set(3, 4, 5)) == (3, 5)


def test_exactly_one_thing_is_visible_under_each_trust() -> None:
    ways = [(trust.exact_sums, trust.masked, trust.local) for trust in TRUSTS.values()]
    assert all(sum(way) == 1 for way in ways)


@pytest.mark.parametrize("name", TRUSTS)
def test_a_trust_is_stored_by_its_name(name: str) -> None:
    privacy = Privacy(1.0, 1e-6, name)
    assert privacy.to_dict()["trust"] == name
    assert privacy.trusted is trust_named(name)


def test_an_unknown_trust_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="coordinator, parties, nobody"):
        trust_named("everybody")
    says = replace(Statement("epsilon-delta", 1.0, 1e-6, "parties"), trust="everybody")
    with pytest.raises(FormatError):
        Statement.from_dict(says.to_dict())


def test_several_parties_are_trusted_rather_than_the_coordinator() -> None:
    assert (usual_trust(1), usual_trust(2)) == ("coordinator", "parties")
