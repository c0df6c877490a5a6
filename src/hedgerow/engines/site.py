"""A site: the folder that one machine of a federation runs from. Nothing private ever leaves it.

site.toml           which site this is
signing-key.pem     its signing key, made here; tls-key.pem and certificate.pem those of its stream
NAME.card.toml      its public card
roster.toml         the roster in force; rosters/ every one that ever was
ledger.sqlite       what was spent; start.toml, limits.toml, plans, runs, sockets
compiled, scratch   what a confined party's process keeps of compiled loops, and for a moment
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

from hedgerow import clock
from hedgerow.data.documents import Document, Matching, named
from hedgerow.engines.cards import COORDINATOR as COORDINATOR
from hedgerow.engines.cards import Card, PinnedRoster, read_roster
from hedgerow.engines.grpc.certificate import make_certificate
from hedgerow.errors import FormatError, SettingsError
from hedgerow.protocol.identity import NAME, Identity, Roster, check_names, fingerprint

FORMAT = 2
_SITE_NAME = Matching(NAME, "the name of a party, or 'coordinator'")
T = TypeVar("T")


@dataclass(frozen=True)
class _SiteFile:
    name: Annotated[str, _SITE_NAME]
    address: str = ""
    bind: str = ""
    mutual_tls: bool = False
    trial: bool = False


@dataclass(frozen=True)
class Site:
    """One site, by its folder: `Site.create` makes it, `Site.open(path)` reads it."""

    path: Path
    name: str  # of the party, or "coordinator"
    address: str = ""  # of a coordinator: host:port that every party dials
    bind: str = ""  # of a coordinator: where it listens, if that is not the address
    mutual_tls: bool = False  # of a coordinator: parties show their certificates as well
    trial: bool = False  # made with all other sites by one account, to try it out

    @classmethod
    def open(cls, path: Path, role: str = "") -> Site:
        """Read a site folder; `role` ("coordinator" or "party") refuses the other kind."""
        file = path / "site.toml"
        if not file.is_file():
            if (path / "local" / "hedgerow" / "kit.toml").is_file():
                raise SettingsError(
                    f"{path} is a site folder of an earlier hedgerow. Make a new one with "
                    "`hedgerow party init` and move files of local/hedgerow into it; the changelog "
                    "says which. Nothing was asked."
                )
            raise SettingsError(
                f"{path} is no site folder: it has no site.toml. Make one with `hedgerow party "
                "init` or `hedgerow coordinator init`, or name the right folder."
            )
        told = _read(_SiteFile, file, "site folder")
        site = cls(path.resolve(), **told.__dict__)
        if role and role != site.role:
            raise SettingsError(
                f"{path} is the site folder of {site.name}, and this command needs a {role}'s"
            )
        site.close_to_others()
        return site

    @classmethod
    def create(
        cls,
        path: Path,
        name: str,
        address: str = "",
        bind: str = "",
        mutual_tls: bool = False,
        trial: bool = False,
    ) -> Site:
        """Make a site folder with keys of its own."""
        if name != COORDINATOR:
            check_names([name])
        if (path / "site.toml").exists() or (path.exists() and not path.is_dir()):
            raise SettingsError(
                f"{path} exists and was not changed. Name a new folder, or go on with this one: "
                "`hedgerow party card` and `hedgerow coordinator card` show its card again."
            )
        site = cls(path.resolve(), name, address, bind, mutual_tls, trial)
        site.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        values = {k: v for k, v in site.__dict__.items() if k != "path" and v not in ("", False)}
        write_file(site.folder / "site.toml", tomli_w.dumps({"format": FORMAT, **values}), 0o600)
        site.write_card()
        return site

    def close_to_others(self) -> None:
        """Take away what other accounts may do here: many programs unpack archives open to all."""
        kept = [self.folder, *(file for file in self.folder.iterdir() if file.is_file())]
        for path in kept:
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue  # a temporary file of a process that runs
            if found.st_uid != os.geteuid():
                raise SettingsError(
                    f"{path} belongs to another account, which could read and change it. Nothing "
                    "was started. Make the site folder as the account that runs it."
                )
            if found.st_mode & 0o077 and not path.is_symlink():
                with suppress(FileNotFoundError):
                    path.chmod(found.st_mode & 0o700)

    @property
    def role(self) -> str:
        return "coordinator" if self.name == COORDINATOR else "party"

    @property
    def folder(self) -> Path:
        return self.path

    @property
    def federation(self) -> str:
        """What the pinned roster calls it; "" before one is pinned."""
        return self.pinned().federation if self.is_pinned else ""

    @property
    def ledger_path(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def party_socket(self) -> Path:
        """Where the party's process answers messages, whoever of its own account carried them."""
        return self.folder / "party.sock"

    @property
    def status_socket(self) -> Path:
        """Where the site's process answers its operator."""
        return self.folder / "status.sock"

    @property
    def console_socket(self) -> Path:
        """Where the party's process answers people who have signed in, through the console."""
        return self.folder / "console.sock"

    @property
    def carrier_socket(self) -> Path:
        """Where the coordinator's process takes messages to the parties."""
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

    def certificate(self) -> tuple[str, str]:
        """Key and certificate of this site's port or stream, made at the first call."""
        files = self.folder / "tls-key.pem", self.folder / "certificate.pem"
        if not all(file.exists() for file in files):
            print_of_key = fingerprint(self.identity().public).replace(" ", "")
            for file, text in zip(files, make_certificate(print_of_key), strict=True):
                write_file(file, text, 0o600)
        key, certificate = (file.read_text("ascii") for file in files)
        return key, certificate

    def card(self) -> Card:
        """The public half of this site, signed by itself."""
        identity, (_, certificate) = self.identity(), self.certificate()
        card = Card(self.name, identity.public, certificate, self.address, self.mutual_tls)
        return card.signed(identity)

    @property
    def card_file(self) -> Path:
        return self.path / f"{self.name}.card.toml"

    def write_card(self) -> Path:
        """The card as a file to hand to the others."""
        write_file(self.card_file, self.card().to_toml(), 0o644)
        return self.card_file

    def pin(self, agreed: PinnedRoster) -> None:
        """Store the roster that this site accepts; its own key must be the one in it."""
        roster, public = agreed.roster, self.identity().public
        pinned = roster.coordinator if self.role == "coordinator" else roster.keys.get(self.name)
        if pinned != public:
            known = "has another key for" if pinned else "does not name"
            raise SettingsError(
                f"the roster {known} {self.name}: it was made without its newest card, or is that "
                "of another federation, or somebody stands in between. Nothing was pinned. Send "
                f"{self.card_file.name} again."
            )
        history = self.folder / "rosters"
        history.mkdir(mode=0o700, exist_ok=True)
        now = clock.utc_now().strftime("%Y%m%dT%H%M%S%f")
        kept = history / f"{now}-{agreed.hash[:12]}.toml"
        write_file(kept, agreed.to_toml(), 0o600)
        if read_roster(kept).hash != agreed.hash:  # what holds is what people compared
            kept.unlink()
            raise FormatError("the roster cannot be stored as it is. Nothing was pinned.")
        write_file(self.folder / "roster.toml", agreed.to_toml(), 0o600)

    @property
    def roster_file(self) -> Path:
        return self.folder / "roster.toml"

    @property
    def is_pinned(self) -> bool:
        return self.roster_file.is_file()

    def pinned(self) -> PinnedRoster:
        """The roster in force, with all that people handed over."""
        if not self.is_pinned:
            raise SettingsError(
                f"no roster is pinned in {self.path}. Exchange cards, make a roster with `hedgerow "
                f"federation roster`, then run `hedgerow {self.role} pin {self.path} ROSTER`."
            )
        return read_roster(self.roster_file)

    def roster(self) -> Roster:
        return self.pinned().roster

    def former_keys(self) -> dict[str, str]:
        """Keys of parties that were pinned once and are not any more, with their names."""
        now, former = set(self.roster().keys.values()), dict[str, str]()
        for file in sorted((self.folder / "rosters").glob("*.toml")):
            with suppress(FormatError, SettingsError):
                former |= {key: name for name, key in read_roster(file).roster.parties}
        return {key: name for key, name in former.items() if key not in now}


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
