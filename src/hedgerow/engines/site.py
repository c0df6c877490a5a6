"""A site: the folder that one machine of a federation runs from, and what hedgerow keeps in it.

`startup/` and the rest of `local/` belong to the engine. `local/hedgerow/` is ours: signing key,
pinned roster, ledger, sockets. It is never copied by the engine and never leaves the site.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import tomli_w
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from hedgerow.data.documents import Document, Key, Matching, Within, named
from hedgerow.errors import FormatError, SettingsError
from hedgerow.protocol.identity import (
    NAME,
    Identity,
    Roster,
    check_names,
    fingerprint,
    signed_by,
)

FORMAT = 1
COORDINATOR = "coordinator"
_CARD = "hedgerow key card 1"
_SITE_NAME = Matching(NAME, "the name of a party, or 'coordinator'")
_Count = Annotated[int, Within(0, 10_000)]
T = TypeVar("T")


@dataclass(frozen=True)
class _Kit:
    """kit.toml: which site of which federation a folder belongs to."""

    federation: str
    name: Annotated[str, _SITE_NAME]
    address: str
    trial: bool = False


@dataclass(frozen=True)
class _CardFile:
    federation: str
    name: Annotated[str, _SITE_NAME]
    key: str
    signature: str
    fingerprint: str = ""  # for people; it follows from the key


@dataclass(frozen=True)
class _Pinned:
    key: str
    fingerprint: str = ""
    name: str = ""


@dataclass(frozen=True)
class _RosterFile:
    federation: str
    trust: str
    colluding: _Count
    minimum: Annotated[_Count, Key("minimum_parties")]
    coordinator: _Pinned
    party: tuple[_Pinned, ...]


@dataclass(frozen=True)
class Site:
    """One site, by its folder: `Site.open(path)` reads it, provisioning writes it with `create`."""

    path: Path
    federation: str
    name: str  # of the party, or "coordinator"
    address: str  # host:port of the coordinator, that every party dials
    trial: bool = False  # made with all other sites by one account, to try it out

    @classmethod
    def open(cls, path: Path, role: str = "") -> Site:
        """Read a site folder; `role` ("coordinator" or "party") refuses the other kind."""
        file = path / "local" / "hedgerow" / "kit.toml"
        if not file.is_file():
            raise SettingsError(
                f"{path} is no site folder: it has no local/hedgerow/kit.toml. Give the folder "
                "that was unpacked from the archive of `hedgerow federation new`."
            )
        kit = _read(_Kit, file, "site folder")
        site = cls(path.resolve(), kit.federation, kit.name, kit.address, kit.trial)
        if role and role != site.role:
            raise SettingsError(
                f"{path} is the site folder of {site.name}, and this command needs a {role}'s"
            )
        site.close_to_others()
        return site

    @classmethod
    def create(
        cls, path: Path, federation: str, name: str, address: str, trial: bool = False
    ) -> Site:
        """Write what hedgerow needs into a site folder that the engine has provisioned."""
        if name != COORDINATOR:
            check_names([name])
        site = cls(path.resolve(), federation, name, address, trial)
        site.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        values = {"format": FORMAT, "federation": federation, "name": name, "address": address}
        if trial:
            values["trial"] = True
        write_file(site.folder / "kit.toml", tomli_w.dumps(values), 0o600)
        return site

    def close_to_others(self) -> None:
        """Take away what other accounts may do here: many programs unpack archives open to all."""
        folders = (self.path / name for name in (".", "startup", "local", "admin", "admin/startup"))
        kept = [folder for folder in (*folders, self.folder) if folder.is_dir()]
        kept += [*self.path.glob("startup/*.key"), *self.path.glob("admin/startup/*.key")]
        kept += [file for file in self.folder.iterdir() if file.is_file()]
        for path in kept:
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue  # a temporary file of a process that runs
            if found.st_uid != os.geteuid():
                raise SettingsError(
                    f"{path} belongs to another account, which could read and change it. Nothing "
                    "was started. Unpack the site folder as the account that runs it."
                )
            if found.st_mode & 0o077 and not path.is_symlink():
                with suppress(FileNotFoundError):
                    path.chmod(found.st_mode & 0o700)

    @property
    def role(self) -> str:
        return "coordinator" if self.name == COORDINATOR else "party"

    @property
    def folder(self) -> Path:
        return self.path / "local" / "hedgerow"

    @property
    def ledger_path(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def party_socket(self) -> Path:
        """Where the party's own process answers messages that the engine carried."""
        return self.folder / "party.sock"

    @property
    def status_socket(self) -> Path:
        """Where the party's own process answers its operator."""
        return self.folder / "status.sock"

    @property
    def carrier_socket(self) -> Path:
        """Where the engine's process takes messages from the coordinator to the parties."""
        return self.folder / "carrier.sock"

    def identity(self) -> Identity:
        """This site's signing key, made at the first call; it never leaves the folder."""
        file = self.folder / "signing-key.pem"
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            made = Ed25519PrivateKey.generate()
            pem = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            write_file(file, pem.decode("ascii"), 0o600, new=True)
        try:
            key = load_pem_private_key(file.read_bytes(), None)
        except ValueError as error:
            raise FormatError(f"{file} is no signing key; restore it from a backup") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise FormatError(f"{file} is no Ed25519 key; restore it from a backup")
        return Identity(key)

    def write_card(self) -> Path:
        """The public half of the key as a file to hand to the others, signed by itself."""
        identity = self.identity()
        card = {"format": FORMAT, "federation": self.federation, "name": self.name}
        values = {**card, "key": identity.public, "fingerprint": fingerprint(identity.public)}
        values["signature"] = identity.sign(_card_text(self.federation, self.name, identity.public))
        file = self.path / f"{self.name}.key.toml"
        write_file(file, tomli_w.dumps(values), 0o644)
        return file

    def pin(self, roster: Roster) -> None:
        """Store the roster that this site accepts; its own key must be the one in it."""
        public = self.identity().public
        pinned = roster.coordinator if self.role == "coordinator" else roster.keys.get(self.name)
        if pinned != public:
            raise SettingsError(
                f"the roster has another key for {self.name}: it was made with an old key card, or "
                f"somebody stands in between. Nothing was pinned. Send {self.name}.key.toml again."
            )
        write_file(self.folder / "roster.toml", roster_text(roster, self.federation), 0o600)

    def roster(self) -> Roster:
        file = self.folder / "roster.toml"
        if not file.is_file():
            raise SettingsError(
                f"no roster is pinned in {self.path}. Exchange the key cards, then run "
                f"`hedgerow federation pin {self.path}`."
            )
        return read_roster(file, self.federation)


@dataclass(frozen=True)
class Card:
    """The public half of a site's signing key, as it was handed over."""

    federation: str
    name: str
    key: str


def read_card(file: Path) -> Card:
    """A key card; its signature shows only that it was not damaged, so compare fingerprints."""
    told = _read(_CardFile, file, "key card")
    card, signature = Card(told.federation, told.name, told.key), told.signature
    if not signed_by(card.key, _card_text(card.federation, card.name, card.key), signature):
        raise FormatError(f"{file} was changed on its way; ask {card.name} to send it again")
    return card


def roster_text(roster: Roster, federation: str) -> str:
    """A roster as TOML; people compare the fingerprints in it by telephone."""
    parties = [
        {"name": name, "key": key, "fingerprint": fingerprint(key)} for name, key in roster.parties
    ]
    values = {
        "format": FORMAT,
        "federation": federation,
        "trust": roster.trust,
        "colluding": roster.colluding,
        "minimum_parties": roster.minimum,
        "coordinator": {
            "key": roster.coordinator,
            "fingerprint": fingerprint(roster.coordinator),
        },
        "party": parties,
    }
    return tomli_w.dumps(values)


def read_roster(file: Path, federation: str = "") -> Roster:
    told = _read(_RosterFile, file, "roster")
    if federation and told.federation != federation:
        raise SettingsError(
            f"{file} is the roster of {told.federation!r}, and this site is of {federation!r}"
        )
    parties = tuple((party.name, party.key) for party in told.party)
    with named(str(file)):
        return Roster(parties, told.coordinator.key, told.colluding, told.minimum, told.trust)


def _card_text(federation: str, name: str, key: str) -> bytes:
    return "\n".join((_CARD, federation, name, key)).encode()


def _read(cls: type[T], file: Path, what: str) -> T:
    document = Document(what, format=FORMAT)
    with named(f"{file} is no readable {what}"):
        return document.read(cls, document.load(file))


def write_file(file: Path, text: str, mode: int, *, new: bool = False) -> None:
    """Write by rename, with this mode from the first byte on."""
    partial = file.with_name(file.name + f".{os.getpid()}.part")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    if new and file.exists():
        partial.unlink()
        raise SettingsError(f"{file} appeared meanwhile; start one process at a time")
    os.replace(partial, file)
