"""Kits, key cards and rosters: what a house keeps, and what it accepts from others."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.deployment.roster import collect, people, roster_fingerprint
from hedgerow.deployment.trial import pin_everywhere
from hedgerow.engines.site import Kit, read_card, read_roster, roster_text
from hedgerow.errors import FormatError, HedgerowError, SettingsError
from hedgerow.protocol.identity import Identity, Roster


def houses(folder: Path, *names: str, federation: str = "trial") -> dict[str, Kit]:
    everyone = ("coordinator", *names)
    return {n: Kit.create(folder / n, federation, n, "localhost:8002") for n in everyone}


def test_a_kit_is_read_back_and_knows_its_role(tmp_path: Path) -> None:
    made = houses(tmp_path, "north")
    assert Kit.open(tmp_path / "north") == made["north"]
    assert Kit.open(tmp_path / "coordinator", "coordinator").role == "coordinator"
    with pytest.raises(SettingsError, match="is the kit of north, and this command needs a coord"):
        Kit.open(tmp_path / "north", "coordinator")
    with pytest.raises(SettingsError, match="is no kit"):
        Kit.open(tmp_path)


def test_the_signing_key_is_made_once_and_closed_to_others(tmp_path: Path) -> None:
    kit = houses(tmp_path, "north")["north"]
    public = kit.identity().public
    assert Kit.open(kit.path).identity().public == public
    for file in (kit.folder / "signing-key.pem", kit.folder / "kit.toml"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(kit.folder.stat().st_mode) == 0o700


def test_a_damaged_signing_key_is_not_replaced_in_silence(tmp_path: Path) -> None:
    kit = houses(tmp_path, "north")["north"]
    kit.identity()
    (kit.folder / "signing-key.pem").write_text("gone")
    with pytest.raises(FormatError, match="restore it from a backup"):
        kit.identity()


def test_a_card_that_was_changed_is_refused(tmp_path: Path) -> None:
    kits = houses(tmp_path, "north", "south")
    file = kits["north"].write_card()
    assert read_card(file).key == kits["north"].identity().public
    text = file.read_text()
    file.write_text(text.replace("north", "south"))
    with pytest.raises(FormatError, match="was changed on its way"):
        read_card(file)
    file.write_text(text.replace(kits["north"].identity().public, Identity().public))
    with pytest.raises(FormatError, match="was changed on its way"):
        read_card(file)


def test_everyone_pins_one_roster(tmp_path: Path) -> None:
    kits = houses(tmp_path, "a", "b", "c")
    pin_everywhere(kits)
    assert len({kit.roster().hash for kit in kits.values()}) == 1
    assert len({roster_fingerprint(kit.roster()) for kit in kits.values()}) == 1
    roster = kits["a"].roster()
    assert [name for name, _ in people(roster)] == ["coordinator", "a", "b", "c"]
    assert roster.coordinator == kits["coordinator"].identity().public


def test_a_roster_with_another_key_for_this_house_is_not_pinned(tmp_path: Path) -> None:
    kits = houses(tmp_path, "a", "b", "c")
    pin_everywhere(kits)
    roster = kits["a"].roster()
    swapped = tuple((n, Identity().public if n == "b" else k) for n, k in roster.parties)
    forged = Roster(swapped, roster.coordinator, 1, 3, "parties")
    with pytest.raises(SettingsError, match="the roster has another key for b"):
        kits["b"].pin(forged)
    assert kits["b"].roster() == roster
    # The others cannot see it from their own key: that is what comparing fingerprints is for.
    assert roster_fingerprint(forged) != roster_fingerprint(roster)


def test_no_roster_yet_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="hedgerow federation pin"):
        houses(tmp_path, "a")["a"].roster()


def test_rosters_that_no_run_could_use_are_refused(tmp_path: Path) -> None:
    kits = houses(tmp_path, "a", "b")
    cards = [read_card(kit.write_card()) for kit in kits.values()]
    coordinator = kits["coordinator"]
    for trust, colluding, minimum, words in (
        ("parties", 1, 3, "2 parties can never make a sum of at least 3"),
        ("parties", 2, 2, "2 parties can never make a sum of at least 3"),
        ("parties", 0, 2, "colluding is 0"),
        ("everyone", 1, 2, "known: coordinator, parties, nobody"),
    ):
        with pytest.raises(SettingsError, match=words):
            collect(coordinator, cards, trust, colluding, minimum)
    assert collect(coordinator, cards, "parties", 1, 2)[0].minimum == 2
    with pytest.raises(SettingsError, match="coordinator's key card is missing"):
        collect(kits["a"], [c for c in cards if c.name != "coordinator"], "parties", 1, 2)


def test_cards_of_another_federation_or_two_keys_of_one_house_are_refused(tmp_path: Path) -> None:
    kits = houses(tmp_path / "one", "a", "b", "c")
    other = houses(tmp_path / "two", "a", federation="other")
    again = houses(tmp_path / "three", "a")
    with pytest.raises(SettingsError, match="is for the federation 'other'"):
        collect(kits["coordinator"], [read_card(other["a"].write_card())], "parties", 1, 3)
    twice = [read_card(kits["a"].write_card()), read_card(again["a"].write_card())]
    with pytest.raises(SettingsError, match="two different keys for a"):
        collect(kits["coordinator"], twice, "parties", 1, 3)


def test_a_roster_survives_its_file_and_a_newer_format_is_refused(tmp_path: Path) -> None:
    kits = houses(tmp_path, "a", "b", "c")
    pin_everywhere(kits)
    roster, file = kits["a"].roster(), tmp_path / "roster.toml"
    file.write_text(roster_text(roster, "trial"))
    assert read_roster(file, "trial") == roster
    with pytest.raises(SettingsError, match="is the roster of 'trial'"):
        read_roster(file, "other")
    file.write_text(file.read_text().replace("format = 1", "format = 9"))
    with pytest.raises(FormatError, match="format 9"):
        read_roster(file)


@given(st.text(max_size=200) | st.sampled_from(["format = 1", "format = 1\nparty = 3"]))
def test_any_text_is_a_roster_or_a_clear_error(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "roster.toml"
        file.write_text(text, "utf-8")
        for read in (read_roster, read_card):
            with pytest.raises(HedgerowError):
                read(file)
