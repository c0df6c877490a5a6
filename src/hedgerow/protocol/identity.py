"""Who is who: signing keys, the roster that pins them, and signed announcements of mask keys."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hedgerow.data.documents import Document, Matching, Within, named, shown
from hedgerow.errors import SettingsError
from hedgerow.model.trust import Trust, trust_named
from hedgerow.packing import canonical_json, digest

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
PARTY_NAME = Matching(
    re.compile(rf"(?!coordinator\Z){NAME.pattern}"),
    "a party name: 1 to 40 of a-z, 0-9 and hyphens, no hyphen first (and not 'coordinator')",
)
_ROSTER, _ANNOUNCED = Document("roster"), Document("announcement")
_Count = Annotated[int, Within(0, 2**53)]
_ANNOUNCEMENT = "hedgerow announcement 2"


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Party names are unique and made of a-z, 0-9 and hyphens, at most 40 characters.

    None begins with a hyphen, as options do. "coordinator" is taken: it owns the coordinator's
    lines in a ledger.
    """
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not PARTY_NAME.pattern.fullmatch(name):
            raise SettingsError(f"{shown(name)} is not {PARTY_NAME.wanted}")
        if name in seen:
            raise SettingsError(f"two parties are called {name!r}; names must be unique")
        seen.add(name)
    return tuple(names)


class Identity:
    """An Ed25519 signing key that never leaves its owner."""

    def __init__(self, key: Ed25519PrivateKey | None = None) -> None:
        self._key = key or Ed25519PrivateKey.generate()
        self.public = self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        return self._key.sign(message).hex()

    def secret(self) -> bytes:
        """A secret that follows from the key and says nothing of it: the same after a restart."""
        derive = HKDF(hashes.SHA256(), 32, salt=None, info=b"hedgerow secret of a party 1").derive
        return derive(self._key.private_bytes_raw())


def signed_by(public: str, message: bytes, signature: str) -> bool:
    """Whether `signature` is `public`'s over exactly this message."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def fingerprint(public: str) -> str:
    """A short form of a key that two people can compare by telephone."""
    text = digest("hedgerow fingerprint 1", public)[:32].upper()
    return " ".join(text[i : i + 4] for i in range(0, 32, 4))


@dataclass(frozen=True)
class Roster:
    """The pinned list of parties and keys, who is trusted, how many may collude, the least sum.

    A party answers under the trust of its roster only: a plan cannot ask for exact sums where the
    parties agreed on masked ones.
    """

    parties: tuple[tuple[str, str], ...]  # (name, public signing key), sorted by name
    coordinator: str
    colluding: _Count
    minimum: _Count
    trust: str

    def __post_init__(self) -> None:
        check_names(self.names)
        if list(self.names) != sorted(self.names):
            raise SettingsError("a roster lists its parties in alphabetical order")
        if len({key for _, key in self.parties}) != len(self.parties):
            raise SettingsError("two parties of the roster have the same key")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.parties)

    @cached_property
    def keys(self) -> dict[str, str]:
        return dict(self.parties)

    @property
    def trusted(self) -> Trust:
        """What follows from the trust; SettingsError if there is no such trust."""
        return trust_named(self.trust)

    def without(self, absent: Collection[str]) -> tuple[str, ...]:
        """The names of all parties but those absent, in order."""
        return tuple([name for name in self.names if name not in absent])

    @cached_property
    def least_set(self) -> int:
        """The smallest set of these parties that may be summed."""
        return self.trusted.least_set(self.minimum, self.colluding, len(self.parties))

    @cached_property
    def hash(self) -> str:
        return digest("hedgerow roster 1", canonical_json(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        return {
            "parties": [list(pair) for pair in self.parties],
            "coordinator": self.coordinator,
            "colluding": self.colluding,
            "minimum": self.minimum,
            "trust": self.trust,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Roster:
        with named("the roster is not readable"):
            return _ROSTER.read(Roster, values)


@dataclass(frozen=True)
class Announcement:
    """A party's mask key for one process and run, signed with its pinned key.

    The boot counter rises with every start of the party, so an old key cannot be replayed; the
    number rises with every opening, so that neither can an old set of announcements.
    """

    name: str
    boot: _Count
    number: _Count
    key: str  # X25519 public key, hex
    plan: str
    schema: str
    roster: str
    signature: str = ""

    @property
    def about(self) -> tuple[str, str, str]:
        """The plan or agreement, schema and roster that it is for."""
        return self.plan, self.schema, self.roster

    def message(self) -> bytes:
        fields = (*self.about, self.name, self.boot, self.number, self.key)
        return canonical_json([_ANNOUNCEMENT, *fields])

    def signed(self, identity: Identity) -> Announcement:
        return Announcement(**{**self.to_dict(), "signature": identity.sign(self.message())})

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Announcement:
        with named("an announcement is not readable"):
            return _ANNOUNCED.read(Announcement, values)


def digest_of(announcements: Mapping[str, Announcement]) -> str:
    """One hash of a whole set of signed announcements."""
    signed = [announcements[name] for name in sorted(announcements)]
    return digest(_ANNOUNCEMENT, *(a.message() + bytes.fromhex(a.signature) for a in signed))
