"""What people carry between sites, all of it public: a card for every site, a roster for all.

Each has a phrase of twelve words, to be read over the telephone: a card or roster that somebody
changed on its way has another one. Phrases are computed and never written into the files, where
whoever changes a file would leave the old phrase standing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tomli_w

from hedgerow.data.documents import Document, Key, Matching, Within, named, shown
from hedgerow.engines.grpc.certificate import check_certificate
from hedgerow.errors import FormatError, SettingsError
from hedgerow.packing import canonical_json, digest
from hedgerow.protocol.identity import NAME, Identity, Roster, signed_by

FORMAT = 2
COORDINATOR = "coordinator"
_CARD, _ROSTER = "hedgerow card 2", "hedgerow pinned roster 2"
_SITE_NAME = Matching(NAME, "the name of a party, or 'coordinator'")
_ADDRESS = Matching(
    re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}|"),
    "of the form host:port, such as train.example.org:8002",
)
_Address = Annotated[str, _ADDRESS]
# One spelling of a key, or one key could stand in a roster under two names, or be back unseen.
_PublicKey = Annotated[
    str, Matching(re.compile(r"[0-9a-f]{64}"), "a public key: 64 of 0-9 and a-f")
]
# It stands in a comment of the roster file and on terminals.
_FEDERATION = Matching(
    re.compile(r"\w[\w .,:'()&/+-]{0,79}"),
    "the name of a federation: one line of at most 80 letters, digits, blanks and .,:'()&/+-",
)
_ASK = "Compare its phrase by telephone; hedgerow shows it, no file does."
_WORK = 2**14  # of scrypt for a phrase: 16 MiB and a few hundredths of a second
_Count = Annotated[int, Within(0, 10_000)]
T = TypeVar("T")


@dataclass(frozen=True)
class Card:
    """One site's public half, as it is handed over."""

    name: Annotated[str, _SITE_NAME]
    key: _PublicKey  # Ed25519, hex
    certificate: str = ""  # of its port or stream, PEM
    address: _Address = ""  # of a coordinator: where parties dial
    mutual_tls: bool = False  # of a coordinator: parties show their certificates as well
    signature: str = ""

    def text(self) -> bytes:
        return canonical_json([_CARD, {**self.__dict__, "signature": ""}])

    def signed(self, identity: Identity) -> Card:
        return Card(**{**self.__dict__, "signature": identity.sign(self.text())})

    @property
    def phrase(self) -> str:
        return phrase_of(digest(self.text()))

    def to_toml(self) -> str:
        return f"# The card of {self.name}: public. {_ASK}\n" + _toml(
            {"format": FORMAT, **self.__dict__}
        )


def read_card(file: Path) -> Card:
    """A card; its signature shows only that it was not damaged, so compare phrases."""
    card = _read(Card, file, "card")
    if not signed_by(card.key, card.text(), card.signature):
        raise FormatError(f"{file} was changed on its way; ask {card.name} to send it again")
    if card.certificate:
        check_certificate(card.certificate, card.name)
    return card


@dataclass(frozen=True)
class _Coordinator:
    key: _PublicKey
    address: _Address = ""
    certificate: str = ""


@dataclass(frozen=True)
class _Party:
    name: str
    key: _PublicKey
    certificate: str = ""


@dataclass(frozen=True)
class _RosterFile:
    federation: Annotated[str, _FEDERATION]
    trust: str
    colluding: _Count
    minimum: Annotated[_Count, Key("minimum_parties")]
    coordinator: _Coordinator
    party: tuple[_Party, ...]
    mutual_tls: bool = False


@dataclass(frozen=True)
class PinnedRoster:
    """A roster as people hand it over: who is in, who is trusted, and where parties dial."""

    federation: str
    roster: Roster
    address: str = ""
    certificate: str = ""  # of the coordinator's port
    certificates: Mapping[str, str] = field(default_factory=dict)  # of parties
    mutual_tls: bool = False

    def __post_init__(self) -> None:
        if not _FEDERATION.pattern.fullmatch(self.federation):
            raise SettingsError(
                f"{shown(self.federation)} is not {_FEDERATION.wanted}. Nothing was pinned."
            )

    @cached_property
    def hash(self) -> str:
        return digest(_ROSTER, canonical_json(self._values()))

    @cached_property
    def phrase(self) -> str:
        return phrase_of(self.hash)

    def to_toml(self) -> str:
        return f"# The roster of {self.federation}: public. {_ASK}\n" + _toml(self._values())

    def differences(self, before: PinnedRoster) -> list[str]:
        """Everything that is not as it was, one sentence each."""
        found = []
        now, then = self.roster, before.roster
        for name in sorted({*now.names, *then.names}):
            if name not in then.keys:
                found.append(f"{name} is new.")
            elif name not in now.keys:
                found.append(f"{name} is gone: its runs end.")
            elif now.keys[name] != then.keys[name]:
                found.append(f"{name} has ANOTHER SIGNING KEY: ask {name} by telephone why.")
            elif self.certificates.get(name) != before.certificates.get(name):
                found.append(f"{name} has another certificate.")
        if now.coordinator != then.coordinator:
            found.append("The coordinator has ANOTHER SIGNING KEY: ask by telephone why.")
        if self.certificate != before.certificate:
            found.append("The coordinator's port has another certificate.")
        for what, new, old in (
            ("The federation is called", self.federation, before.federation),
            ("The coordinator's address is", self.address, before.address),
            ("Trust is", now.trust, then.trust),
            ("The number of parties that may collude is", now.colluding, then.colluding),
            ("The smallest sum has so many parties:", now.minimum, then.minimum),
            ("Parties show certificates of their own:", self.mutual_tls, before.mutual_tls),
        ):
            if new != old:
                found.append(f"{what} {new}, and was {old}.")
        return found

    def _values(self) -> dict[str, Any]:
        roster = self.roster
        return {
            "format": FORMAT, "federation": self.federation, "trust": roster.trust,
            "colluding": roster.colluding, "minimum_parties": roster.minimum,
            "mutual_tls": self.mutual_tls,
            "coordinator": {
                "key": roster.coordinator, "address": self.address,
                "certificate": self.certificate,
            },
            "party": [
                {"name": name, "key": key, "certificate": self.certificates.get(name, "")}
                for name, key in roster.parties
            ],
        }  # fmt: skip


def read_roster(file: Path) -> PinnedRoster:
    told = _read(_RosterFile, file, "roster")
    parties = tuple((party.name, party.key) for party in told.party)
    coordinator = told.coordinator
    with named(str(file)):
        roster = Roster(parties, coordinator.key, told.colluding, told.minimum, told.trust)
        if coordinator.certificate:
            check_certificate(coordinator.certificate, COORDINATOR)
        certificates = {
            party.name: check_certificate(party.certificate, party.name)
            for party in told.party
            if party.certificate
        }
    return PinnedRoster(
        told.federation, roster, coordinator.address, coordinator.certificate, certificates,
        told.mutual_tls,
    )  # fmt: skip


@lru_cache(maxsize=64)  # a status says it again and again
def phrase_of(hexadecimal: str) -> str:
    """Twelve words for 128 bits that follow from a hash, slowly.

    Nobody finds a second card or roster for a phrase that is there. Whoever makes both, as who
    hands one roster to one site and one to another, looks for any two that agree: 2**64 tries,
    which for a plain hash is a few weeks of rented computers. So each try takes scrypt's work.

    >>> phrase_of("00" * 32)
    'hamster tired voice improve local lady chat buyer forest denial install predict'
    """
    from mnemonic import Mnemonic

    hashed, salt = bytes.fromhex(hexadecimal), b"hedgerow phrase 2"
    stretched = hashlib.scrypt(hashed, salt=salt, n=_WORK, r=8, p=1, dklen=16)
    words: str = Mnemonic("english").to_mnemonic(stretched)
    return words


def _toml(values: Mapping[str, Any]) -> str:
    return tomli_w.dumps(values, multiline_strings=True)


def _read(cls: type[T], file: Path, what: str) -> T:
    document = Document(what, format=FORMAT)
    with named(f"{file} is no readable {what}"):
        values = document.load(file)
        if what == "roster" and "signature" in values:
            raise FormatError("it is a card. `hedgerow federation roster` makes a roster of cards")
        if what == "card" and "party" in values:
            raise FormatError("it is a roster. Each site has its own card, NAME.card.toml")
        return document.read(cls, values)
