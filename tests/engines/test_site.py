"""Site folders, key cards and rosters: what a site keeps, and what it accepts from others."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.deployment.roster import collect, people, roster_fingerprint
from hedgerow.deployment.trial import pin_everywhere
from hedgerow.engines.site import Site, read_card, read_roster, roster_text
from hedgerow.errors import FormatError, HedgerowError, SettingsError
from hedgerow.protocol.identity import Identity, Roster


def made_sites(folder: Path, *names: str, federation: str = "trial") -> dict[str, Site]:
    everyone = ("coordinator", *names)
    return {n: Site.create(folder / n, federation, n, "localhost:8002") for n in everyone}


def test_a_site_is_read_back_and_knows_its_role(tmp_path: Path) -> None:
    made = made_sites(tmp_path, "north")
    assert Site.open(tmp_path / "north") == made["north"]
    assert Site.open(tmp_path / "coordinator", "coordinator").role == "coordinator"
    with pytest.raises(
        SettingsError, match="is the site folder of north, and this command needs a coord"
    ):
        Site.open(tmp_path / "north", "coordinator")
    with pytest.raises(SettingsError, match="is no site folder"):
        Site.open(tmp_path)


def test_the_signing_key_is_made_once_and_closed_to_others(tmp_path: Path) -> None:
    site = made_sites(tmp_path, "north")["north"]
    public = site.identity().public
    assert Site.open(site.path).identity().public == public
    for file in (site.folder / "signing-key.pem", site.folder / "kit.toml"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(site.folder.stat().st_mode) == 0o700


def test_a_damaged_signing_key_is_not_replaced_in_silence(tmp_path: Path) -> None:
    site = made_sites(tmp_path, "north")["north"]
    site.identity()
    (site.folder / "signing-key.pem").write_text("gone")
    with pytest.raises(FormatError, match="restore it from a backup"):
        site.identity()


def test_a_card_that_was_changed_is_refused(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "north", "south")
    file = sites["north"].write_card()
    assert read_card(file).key == sites["north"].identity().public
    text = file.read_text()
    file.write_text(text.replace("north", "south"))
    with pytest.raises(FormatError, match="was changed on its way"):
        read_card(file)
    file.write_text(text.replace(sites["north"].identity().public, Identity().public))
    with pytest.raises(FormatError, match="was changed on its way"):
        read_card(file)


def test_everyone_pins_one_roster(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b", "c")
    pin_everywhere(sites)
    assert len({site.roster().hash for site in sites.values()}) == 1
    assert len({roster_fingerprint(site.roster()) for site in sites.values()}) == 1
    roster = sites["a"].roster()
    assert [name for name, _ in people(roster)] == ["coordinator", "a", "b", "c"]
    assert roster.coordinator == sites["coordinator"].identity().public


def test_a_roster_with_another_key_for_this_site_is_not_pinned(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b", "c")
    pin_everywhere(sites)
    roster = sites["a"].roster()
    swapped = tuple((n, Identity().public if n == "b" else k) for n, k in roster.parties)
    forged = Roster(swapped, roster.coordinator, 1, 3, "parties")
    with pytest.raises(SettingsError, match="the roster has another key for b"):
        sites["b"].pin(forged)
    assert sites["b"].roster() == roster
    # The others cannot see it from their own key: that is what comparing fingerprints is for.
    assert roster_fingerprint(forged) != roster_fingerprint(roster)


def test_no_roster_yet_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="hedgerow federation pin"):
        made_sites(tmp_path, "a")["a"].roster()


def test_rosters_that_no_run_could_use_are_refused(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b")
    cards = [read_card(site.write_card()) for site in sites.values()]
    coordinator = sites["coordinator"]
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
        collect(sites["a"], [c for c in cards if c.name != "coordinator"], "parties", 1, 2)


def test_cards_of_another_federation_or_two_keys_of_one_site_are_refused(tmp_path: Path) -> None:
    sites = made_sites(tmp_path / "one", "a", "b", "c")
    other = made_sites(tmp_path / "two", "a", federation="other")
    again = made_sites(tmp_path / "three", "a")
    with pytest.raises(SettingsError, match="is for the federation 'other'"):
        collect(sites["coordinator"], [read_card(other["a"].write_card())], "parties", 1, 3)
    twice = [read_card(sites["a"].write_card()), read_card(again["a"].write_card())]
    with pytest.raises(SettingsError, match="two different keys for a"):
        collect(sites["coordinator"], twice, "parties", 1, 3)


def test_a_roster_survives_its_file_and_a_newer_format_is_refused(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b", "c")
    pin_everywhere(sites)
    roster, file = sites["a"].roster(), tmp_path / "roster.toml"
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
