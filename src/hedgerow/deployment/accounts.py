"""Accounts of a site: named people, what each may do, and how they sign in by a one-time link.

`accounts.toml` in the site folder has names, roles and the hash of a link that was not used yet.
The party's process reads it at every request, so a role holds from the moment it is written.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Literal

import tomli_w

from hedgerow import clock
from hedgerow.data.documents import Document, Matching, OneOf
from hedgerow.deployment.approvals import write_private
from hedgerow.engines.site import Site
from hedgerow.errors import SettingsError
from hedgerow.packing import digest

FILE = "accounts.toml"
Action = Literal["look", "operate", "decide"]
# look: status, budget, plans, ledger; operate: row counts and failed connections too;
# decide: approve, reject and withdraw plans, and settle a gap in the ledger.
ROLES: dict[str, frozenset[str]] = {
    "operator": frozenset({"look", "operate"}),
    "privacy-officer": frozenset({"look", "decide"}),
    "reader": frozenset({"look"}),
}
OWNER = "owner"  # whoever holds the site folder itself, where there are no accounts
LINK_LASTS = timedelta(hours=24)
SESSION_LASTS, SESSION_IDLES = timedelta(hours=12), timedelta(minutes=30)
MOST_SESSIONS = 64
_NAME = Matching(
    re.compile(r"\S(?:[^\x00-\x1f\x7f]{0,78}\S)?"), "a name of 1 to 80 printable characters"
)
_ACCOUNTS = Document("accounts file", SettingsError, 1, ending=". Nothing was decided.")
_ACCOUNT = Document("account", SettingsError, ending=". Nothing was changed.")
_LABEL = "hedgerow sign-in 1"


class NotAllowed(SettingsError):
    """Whoever asks has no session, or a role that may not do this."""

    exit_code = 3


@dataclass(frozen=True)
class Account:
    """A person at a site."""

    name: Annotated[str, _NAME]
    role: Annotated[str, OneOf(tuple(ROLES))]
    link: str = ""  # the hash of a one-time link that was not used yet
    link_until: str = ""  # UTC


@dataclass(frozen=True)
class _File:
    account: tuple[Account, ...] = ()


@dataclass(frozen=True)
class Caller:
    """Who asks the party's process for something; `role` is "owner" where there are no accounts."""

    name: str
    role: str

    def check(self, action: Action) -> None:
        """NotAllowed unless the role may do this."""
        if self.role != OWNER and action not in ROLES.get(self.role, frozenset()):
            may = ", ".join(role for role, actions in ROLES.items() if action in actions)
            raise NotAllowed(
                f"{self.name or 'whoever asks'} is {self.role or 'nobody'} here, and this is for: "
                f"{may}. Nothing was decided."
            )


class Accounts:
    """The accounts of one site, in its folder."""

    def __init__(self, site: Site) -> None:
        self._site, self._path = site, site.folder / FILE

    def everyone(self) -> tuple[Account, ...]:
        if not self._path.exists():
            return ()
        return _ACCOUNTS.read(_File, _ACCOUNTS.load(self._path)).account

    def named(self, name: str) -> Account:
        for account in self.everyone():
            if account.name == name:
                return account
        known = ", ".join(account.name for account in self.everyone()) or "none"
        raise NotAllowed(f"there is no account {name!r}; known: {known}. Nothing was decided.")

    def put(self, name: str, role: str) -> Account:
        """Add an account, or give a known one another role."""
        account = _ACCOUNT.read(Account, {"name": name, "role": role})
        with self._changing() as accounts:
            accounts[name] = replace(accounts.get(name, account), role=role)
        return account

    def remove(self, name: str) -> None:
        with self._changing() as accounts:
            if accounts.pop(name, None) is None:
                raise NotAllowed(f"there is no account {name!r}. Nothing was changed.")

    def make_link(self, name: str) -> str:
        """A code that signs this account in once, within a day; an earlier one is void."""
        code = secrets.token_urlsafe(32)
        until = (clock.utc_now() + LINK_LASTS).isoformat(timespec="seconds")
        with self._changing() as accounts:
            if name not in accounts:
                raise NotAllowed(f"there is no account {name!r}. Nothing was changed.")
            accounts[name] = replace(accounts[name], link=_hash(code), link_until=until)
        return code

    def redeem(self, code: str) -> Account:
        """The account that a code signs in; it is used up by this."""
        now = clock.utc_now()
        with self._changing() as accounts:
            for name, account in accounts.items():
                if account.link and secrets.compare_digest(account.link, _hash(code)):
                    accounts[name] = replace(account, link="", link_until="")
                    if datetime.fromisoformat(account.link_until) < now:
                        break
                    return account
        raise NotAllowed(
            "this link was used already, is older than a day, or was never given out. Ask for "
            "another one: `hedgerow party account link SITE NAME`."
        )

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Account]]:
        """One process at a time changes the file; what is raised inside still saves nothing."""
        lock = os.open(self._site.folder / "accounts.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            accounts = {account.name: account for account in self.everyone()}
            before = dict(accounts)
            yield accounts
            if accounts != before:
                tables = [_table(account) for account in accounts.values()]
                write_private(self._path, tomli_w.dumps({"format": 1, "account": tables}))
        finally:
            os.close(lock)


class Sessions:
    """Who has signed in at a process; gone with it."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts, self._lock = accounts, threading.Lock()
        # By the token's hash: the account's name, when it ends, and when it was last used.
        self._known: dict[str, tuple[str, datetime, datetime]] = {}

    def sign_in(self, code: str) -> tuple[str, Caller]:
        """A session's token, for whoever has a one-time code."""
        account = self._accounts.redeem(code)
        token, now = secrets.token_urlsafe(32), clock.utc_now()
        with self._lock:
            while len(self._known) >= MOST_SESSIONS:
                del self._known[min(self._known, key=lambda one: self._known[one][2])]
            self._known[_hash(token)] = (account.name, now + SESSION_LASTS, now)
        return token, Caller(account.name, account.role)

    def caller(self, token: str) -> Caller:
        """Whose session it is, with the role of this moment; NotAllowed if it is none."""
        now, key = clock.utc_now(), _hash(token)
        with self._lock:
            name, ends, used = self._known.get(key, ("", now, now))
            if not name or now >= ends or now - used >= SESSION_IDLES:
                self._known.pop(key, None)
                raise NotAllowed("nobody is signed in here, or not any more; sign in again.")
            self._known[key] = (name, ends, now)
        return Caller(name, self._accounts.named(name).role)

    def sign_out(self, token: str) -> None:
        with self._lock:
            self._known.pop(_hash(token), None)


def _table(account: Account) -> dict[str, str]:
    return {key: value for key, value in asdict(account).items() if value}


def _hash(secret: str) -> str:
    return digest(_LABEL, secret)
