"""Site folders, cards and rosters: what a site keeps, and what it accepts from others."""

from __future__ import annotations

import hashlib
import stat
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from mnemonic import Mnemonic

from hedgerow.deployment.roster import people, roster_of
from hedgerow.deployment.trial import pin_everywhere
from hedgerow.engines.cards import Card, PinnedRoster, phrase_of, read_card, read_roster
from hedgerow.engines.grpc.certificate import check_certificate, make_certificate
from hedgerow.engines.site import Site
from hedgerow.errors import FormatError, HedgerowError, SettingsError
from hedgerow.protocol.identity import Identity, Roster


def made_sites(folder: Path, *names: str) -> dict[str, Site]:
    made = {"coordinator": Site.create(folder / "coordinator", "coordinator", "localhost:8002")}
    return made | {name: Site.create(folder / name, name) for name in names}


def cards_of(sites: dict[str, Site]) -> list[Card]:
    return [read_card(site.card_file) for site in sites.values()]


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
    with pytest.raises(SettingsError, match="exists and was not changed"):
        Site.create(tmp_path / "north", "north")


def test_a_site_folder_of_an_earlier_version_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "local" / "hedgerow").mkdir(parents=True)
    (tmp_path / "local" / "hedgerow" / "kit.toml").write_text("format = 1")
    with pytest.raises(SettingsError, match=r"of an earlier hedgerow.*changelog"):
        Site.open(tmp_path)


def test_keys_are_made_once_and_closed_to_others(tmp_path: Path) -> None:
    site = made_sites(tmp_path, "north")["north"]
    public, certificate = site.identity().public, site.certificate()
    assert Site.open(site.path).identity().public == public
    assert Site.open(site.path).certificate() == certificate
    for name in ("signing-key.pem", "tls-key.pem", "site.toml"):
        assert stat.S_IMODE((site.folder / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(site.folder.stat().st_mode) == 0o700


def test_a_damaged_signing_key_is_not_replaced_in_silence(tmp_path: Path) -> None:
    site = made_sites(tmp_path, "north")["north"]
    (site.folder / "signing-key.pem").write_text("gone")
    with pytest.raises(FormatError, match="restore it from a backup"):
        site.identity()


def test_a_card_holds_nothing_private_and_one_that_was_changed_is_refused(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "north", "south")
    file = sites["north"].card_file
    card, text = read_card(file), file.read_text()
    assert card == sites["north"].card()
    assert card.phrase not in text  # whoever changes the file would leave it standing
    assert "PRIVATE" not in text
    for before, after in (
        ('"north"', '"south"'),
        (card.key, Identity().public),
        (card.certificate, sites["south"].certificate()[1]),
    ):
        file.write_text(text.replace(before, after))
        with pytest.raises(FormatError, match="was changed on its way"):
            read_card(file)


def test_every_change_of_a_card_or_roster_changes_its_phrase(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b", "c")
    card = sites["coordinator"].card()
    changed = (
        replace(card, address="localhost:8003"), replace(card, key=Identity().public),
        replace(card, certificate=""), replace(card, mutual_tls=True), replace(card, name="x"),
    )  # fmt: skip
    assert len({one.phrase for one in (card, *changed)}) == 6
    assert all(len(one.phrase.split()) == 12 for one in changed)
    agreed = roster_of(cards_of(sites), "trial")
    rosters = [agreed, *others_than(agreed)]
    assert len({one.phrase for one in rosters}) == len(rosters)


def test_a_phrase_is_slow_to_look_for() -> None:
    """Of the plain hash two rosters with one phrase are found in 2**64 tries, which can be paid."""
    known = "762b6ef022b3bf2026f0359bff3dc3a96a0b0549baf91610cccfb42ac22fc3dc"
    salt = b"hedgerow phrase 2"
    slow = hashlib.scrypt(bytes.fromhex(known), salt=salt, n=2**14, r=8, p=1, dklen=16)
    assert Mnemonic("english").to_entropy(phrase_of(known)) == slow


NAMES_OF_FEDERATIONS = [
    "a\nb", "a\rb", "a" + chr(27) + "[2J", chr(0x202E) + "a", "", " ", "a" * 81,
    "c\nformat = 2\nfederation = '''\ntrust = 'coordinator'\n#",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES_OF_FEDERATIONS)
def test_a_federation_has_a_name_that_cannot_change_its_file_or_a_screen(
    name: str, tmp_path: Path
) -> None:
    sites = made_sites(tmp_path, "a", "b", "c")
    with pytest.raises(SettingsError, match="is not the name of a federation"):
        roster_of(cards_of(sites), name)
    told = tomllib.loads(roster_of(cards_of(sites), "trial").to_toml())
    file = tmp_path / "handed-over.toml"
    file.write_text(tomli_w.dumps({**told, "federation": name}))
    with pytest.raises(FormatError, match="the name of a federation"):
        read_roster(file)


def test_what_is_pinned_is_what_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a roster ever be written as another one, the site keeps the one before."""
    sites = made_sites(tmp_path, "a", "b", "c")
    agreed = roster_of(cards_of(sites), "trial")
    sites["a"].pin(agreed)
    other, text = replace(agreed, federation="another"), agreed.to_toml()
    monkeypatch.setattr(PinnedRoster, "to_toml", lambda self: text)
    with pytest.raises(FormatError, match="Nothing was pinned"):
        sites["a"].pin(other)
    assert sites["a"].pinned() == agreed
    assert len(list((sites["a"].folder / "rosters").iterdir())) == 1


@pytest.mark.parametrize("spell", [str.upper, lambda key: key[:2] + " " + key[2:], lambda _: "00"])
def test_a_key_has_one_spelling(tmp_path: Path, spell: Callable[[str], str]) -> None:
    """Else one key stands under two names in a roster, or is back after it was revoked."""
    sites = made_sites(tmp_path, "a", "b", "c")
    text = roster_of(cards_of(sites), "trial").to_toml()
    file, key = tmp_path / "roster.toml", sites["b"].identity().public
    file.write_text(text.replace(key, spell(key)))
    with pytest.raises(FormatError, match="64 of 0-9 and a-f"):
        read_roster(file)
    identity = sites["b"].identity()
    card = replace(sites["b"].card(), key=spell(key)).signed(identity)
    file.write_text(card.to_toml())
    with pytest.raises(FormatError, match="64 of 0-9 and a-f"):
        read_card(file)


@pytest.mark.parametrize("label", ["TRUSTED CERTIFICATE", "X509 CERTIFICATE", ""])
def test_nothing_stands_beside_a_certificate(tmp_path: Path, label: str) -> None:
    """gRPC reads blocks of PEM that our own check passes over, and trusts what is in them."""
    site = made_sites(tmp_path, "a")["a"]
    own, other = site.certificate()[1], make_certificate("other")[1]
    beside = other.replace("CERTIFICATE", label) if label else "x = 1\n"
    for text in (beside + own, own + beside):
        with pytest.raises(FormatError, match=r"certificate of a|that of a"):
            check_certificate(text, "a")
        identity = site.identity()
        site.card_file.write_text(replace(site.card(), certificate=text).signed(identity).to_toml())
        with pytest.raises(FormatError, match=r"certificate of a|that of a"):
            read_card(site.card_file)
    assert check_certificate(own, "a") == own


def others_than(agreed: PinnedRoster) -> list[PinnedRoster]:
    """Rosters that differ in one thing each."""
    roster = agreed.roster
    swapped = tuple((n, Identity().public if n == "b" else k) for n, k in roster.parties)
    return [
        replace(agreed, federation="x"),
        replace(agreed, address="localhost:1"),
        replace(agreed, certificate=""),
        replace(agreed, certificates={**agreed.certificates, "b": ""}),
        replace(agreed, mutual_tls=True),
        replace(agreed, roster=replace(roster, parties=swapped)),
        replace(agreed, roster=replace(roster, parties=roster.parties[:2])),
        replace(agreed, roster=replace(roster, coordinator=Identity().public)),
        replace(agreed, roster=replace(roster, colluding=2)),
        replace(agreed, roster=replace(roster, minimum=2)),
        replace(agreed, roster=replace(roster, trust="nobody")),
    ]


def test_every_difference_between_two_rosters_is_named(tmp_path: Path) -> None:
    agreed = roster_of(cards_of(made_sites(tmp_path, "a", "b", "c")), "trial")
    assert agreed.differences(agreed) == []
    words = [other.differences(agreed) for other in others_than(agreed)]
    assert all(len(found) == 1 for found in words)
    assert words[5] == ["b has ANOTHER SIGNING KEY: ask b by telephone why."]
    assert words[6] == ["c is gone: its runs end."]
    assert agreed.differences(others_than(agreed)[6]) == ["c is new."]


def test_everyone_pins_one_roster_and_keeps_those_before(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b", "c", "d")
    pin_everywhere(sites)
    assert len({site.pinned().phrase for site in sites.values()}) == 1
    roster = sites["a"].roster()
    assert [name for name, _ in people(roster)] == ["coordinator", "a", "b", "c", "d"]
    assert roster.coordinator == sites["coordinator"].identity().public
    assert sites["a"].former_keys() == {}
    gone = sites.pop("d")
    pin_everywhere(sites)
    assert sites["a"].former_keys() == {gone.identity().public: "d"}
    assert len(list((sites["a"].folder / "rosters").iterdir())) == 2


def test_a_roster_with_another_key_for_this_site_is_not_pinned(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b", "c")
    pin_everywhere(sites)
    agreed = sites["a"].pinned()
    swapped = tuple((n, Identity().public if n == "b" else k) for n, k in agreed.roster.parties)
    forged = replace(agreed, roster=Roster(swapped, agreed.roster.coordinator, 1, 3, "parties"))
    with pytest.raises(SettingsError, match="the roster has another key for b"):
        sites["b"].pin(forged)
    assert sites["b"].pinned() == agreed
    # The others cannot see it from their own key: that is what comparing phrases is for.
    assert forged.phrase != agreed.phrase


def test_what_belongs_to_another_federation_is_not_pinned(tmp_path: Path) -> None:
    sites, others = (made_sites(tmp_path / name, "a", "b", "c") for name in ("one", "two"))
    for each in (sites, others):
        pin_everywhere(each)
    for name in ("a", "coordinator"):
        before = sites[name].pinned()
        with pytest.raises(SettingsError, match=r"that of another federation.*Nothing was pinned"):
            sites[name].pin(others[name].pinned())
        assert sites[name].pinned() == before


def test_a_card_for_a_roster_and_a_roster_for_a_card_are_named(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b", "c")
    pin_everywhere(sites)
    with pytest.raises(FormatError, match=r"it is a card\. `hedgerow federation roster`"):
        read_roster(sites["a"].card_file)
    with pytest.raises(FormatError, match=r"it is a roster\. Each site has its own card"):
        read_card(sites["a"].roster_file)


def test_no_roster_yet_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="hedgerow party pin"):
        made_sites(tmp_path, "a")["a"].roster()


def test_rosters_that_no_run_could_use_are_refused(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b")
    cards = cards_of(sites)
    for trust, colluding, minimum, words in (
        ("parties", 1, 3, "2 parties can never make a sum of at least 3"),
        ("parties", 2, 2, "2 parties can never make a sum of at least 3"),
        ("parties", 0, 2, "colluding is 0"),
        ("everyone", 1, 2, "known: coordinator, parties, nobody"),
    ):
        with pytest.raises(SettingsError, match=words):
            roster_of(cards, "trial", trust, colluding, minimum)
    assert roster_of(cards, "trial", "parties", 1, 2).roster.minimum == 2
    with pytest.raises(SettingsError, match="coordinator's card is missing"):
        roster_of(cards[1:], "trial", "parties", 1, 2)
    wanting = [replace(cards[0], mutual_tls=True), *(replace(c, certificate="") for c in cards[1:])]
    with pytest.raises(SettingsError, match="the cards of a, b have none"):
        roster_of(wanting, "trial", "parties", 1, 2)


def test_two_cards_of_one_name_are_refused(tmp_path: Path) -> None:
    sites = made_sites(tmp_path / "one", "a", "b", "c")
    again = made_sites(tmp_path / "two", "a")
    with pytest.raises(SettingsError, match="two different cards of a"):
        roster_of([*cards_of(sites), again["a"].card()], "trial")
    with pytest.raises(SettingsError, match="two different cards of coordinator"):
        roster_of([*cards_of(sites), again["coordinator"].card()], "trial")
    roster_of([*cards_of(sites), sites["a"].card()], "trial")  # the same one twice is no harm


def test_a_roster_survives_its_file_and_a_newer_format_is_refused(tmp_path: Path) -> None:
    sites = made_sites(tmp_path, "a", "b", "c")
    pin_everywhere(sites)
    agreed, file = sites["a"].pinned(), tmp_path / "roster.toml"
    file.write_text(agreed.to_toml())
    assert read_roster(file) == agreed
    file.write_text(file.read_text().replace("format = 2", "format = 9"))
    with pytest.raises(FormatError, match="format 9"):
        read_roster(file)


@given(st.text(max_size=200) | st.sampled_from(["format = 2", "format = 2\nparty = 3"]))
def test_any_text_is_a_roster_or_a_clear_error(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "roster.toml"
        file.write_text(text, "utf-8")
        for read in (read_roster, read_card):
            with pytest.raises(HedgerowError):
                read(file)
