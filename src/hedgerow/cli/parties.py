"""Where the parties of a training command are: tables in this process, or other sites."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hedgerow.cli.screen import tell
from hedgerow.data.holdout import WHOLE, Part
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.cli.options import EngineOptions
    from hedgerow.coordinator.federation import Federation
    from hedgerow.data.schema import Schema
    from hedgerow.deployment.runs import Command
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.ledger.ledger import Ledger
    from hedgerow.protocol.identity import Roster
    from hedgerow.protocol.roles import RoleFactory, Store

ENGINES = ("local", "grpc", "relay:SOCKET", "dask")
RELAY = "relay:"
_COMMAND = "hedgerow train"  # of those that drive a run, the usual one


class Parties(Protocol):
    """What a training command needs to know of the parties before and while it asks them."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def owners(self) -> tuple[str, ...]:
        """Parties that write into the coordinator's ledger file."""
        ...

    @property
    def tables(self) -> tuple[Path, ...]:
        """Files of this machine that are read."""
        ...

    @property
    def part(self) -> Part:
        """The part of their rows that is meant."""
        ...

    def settled(self, schema: Schema, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was given, completed by what the parties fix; refuses what contradicts it."""
        ...

    def check(self, schema: Schema) -> None:
        """Whatever can be checked before anything is reserved."""
        ...

    @property
    def files(self) -> tuple[Path, ...]:
        """Where rows lie that this command reads: what their ledger is found by."""
        ...

    @property
    def site_ledger(self) -> Path | None:
        """The ledger of the coordinator's site, if there is one."""
        ...

    @contextmanager
    def federation(self, schema: Schema, plan: Plan, ledger: Ledger) -> Iterator[Federation]:
        """The parties, for one run."""
        ...

    def close(self) -> None:
        """End what `check` has started."""
        ...


class _NothingStarted:
    tables: tuple[Path, ...] = ()
    part = WHOLE

    @property
    def files(self) -> tuple[Path, ...]:
        return self.tables

    @property
    def site_ledger(self) -> Path | None:
        return None

    def close(self) -> None:
        pass


class TablesHere(_NothingStarted):
    """Parties of this process, one table each; they share the coordinator's ledger."""

    folder: Path | None = None  # where roles of a session keep what outlives them

    def __init__(self, data: Sequence[str], part: Part = WHOLE) -> None:
        if not data:
            raise SettingsError(
                "no tables: give --data once for each party, or --site SITE for parties at "
                "other sites"
            )
        self._sources, self.part = party_sources(data), part
        self.tables = tuple(self._sources.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._sources))

    @property
    def owners(self) -> tuple[str, ...]:
        return self.names

    def settled(self, schema: Schema, given: Mapping[str, Any]) -> dict[str, Any]:
        from hedgerow.cli.given import with_pooled_cuts

        if self.part.share and given.get("candidates") == "quantiles-not-private":
            raise SettingsError(
                "candidates = quantiles-not-private reads all rows, the held-out ones too. Leave "
                "out --holdout, or choose other candidates"
            )
        return with_pooled_cuts(schema, given, self._sources)

    def check(self, schema: Schema) -> None:
        from hedgerow.data.tables import rows_of

        self._tables = {
            name: self.part.of(rows_of(path, schema), schema, str(path))
            for name, path in self._sources.items()
        }

    @contextmanager
    def federation(self, schema: Schema, plan: Plan, ledger: Ledger) -> Iterator[Federation]:
        from hedgerow.engines.local import local_federation

        asked = plan.privacy
        yield local_federation(
            self._tables, schema, ledger, asked.colluding, asked.minimum_parties, asked.trust
        )

    @contextmanager
    def for_session(
        self, schema: Schema, ledger: Ledger, roles: Mapping[str, RoleFactory]
    ) -> Iterator[Federation]:
        """The parties, for a session in these roles."""
        from hedgerow.deployment.store import FolderStore
        from hedgerow.engines.local_session import session_federation

        stores: dict[str, Store] = {}
        if self.folder is not None:
            stores = {name: FolderStore(self.folder / name) for name in self.names}
        with session_federation(self._tables, schema, ledger, roles, stores) as federation:
            yield federation


@dataclass(frozen=True)
class Patience:
    """How long the coordinator waits: for one reply, and for parties that are gone."""

    reply_seconds: float
    gone_seconds: float


def engine_of(engine: str, site: Path | None) -> str:
    """The engine that is meant: a coordinator's site folder says that parties are elsewhere."""
    return "grpc" if engine == "local" and site is not None else engine


def is_between_sites(engine: str, site: Path | None) -> bool:
    """Whether parties are at other sites."""
    return engine_of(engine, site) == "grpc" or engine.startswith(RELAY)


class OtherSites(_NothingStarted):
    """Parties at other sites: their roster is pinned in the coordinator's site folder."""

    def __init__(
        self,
        site: Path | None,
        data: Sequence[str],
        patience: Patience,
        engine: str = "grpc",
        without: Sequence[str] = (),
    ) -> None:
        from hedgerow.engines.site import Site

        if site is None:
            raise SettingsError(f"--engine {engine} needs --site: the coordinator's site folder")
        if data:
            raise SettingsError(
                "--data has no place with --site: every party reads its own table, given to "
                "`hedgerow party start`"
            )
        self._site, self._patience = Site.open(site, "coordinator"), patience
        self._roster = self._site.roster()
        self._engine_name, self._without = engine, tuple(without)
        if unknown := sorted({*without} - {*self._roster.names}):
            raise SettingsError(
                f"--without {unknown[0]}: no such party; the roster has "
                f"{', '.join(self._roster.names)}. Nothing was asked."
            )

    @property
    def names(self) -> tuple[str, ...]:
        return self._roster.names

    @property
    def owners(self) -> tuple[str, ...]:
        return ()  # every site has a ledger of its own

    def settled(self, schema: Schema, given: Mapping[str, Any]) -> dict[str, Any]:
        if given.get("candidates") == "quantiles-not-private":
            raise SettingsError(
                "candidates = quantiles-not-private reads all rows in one place, and here no "
                'place has them. Choose "quantiles", which is paid for.'
            )
        pinned = pinned_values(self._roster)
        for name, value in pinned.items():
            if given.get(name, value) != value:
                raise SettingsError(
                    f"{name} is {given[name]}, and the pinned roster says {value}: parties would "
                    "refuse. Leave it out, or pin another roster at every site."
                )
        return {**given, **pinned}

    def check(self, schema: Schema) -> None:
        """Tables are checked by the parties themselves, before they join."""

    @property
    def site_ledger(self) -> Path | None:
        return self._site.ledger_path

    @contextmanager
    def federation(self, schema: Schema, plan: Plan, ledger: Ledger) -> Iterator[Federation]:
        from hedgerow.deployment.runs import recorded

        with (
            self.for_session(schema, ledger, {}) as federation,
            recorded(self._site, plan, _typed()) as tell_absent,
        ):
            federation.tell_absent = tell_absent
            yield federation

    @contextmanager
    def for_session(
        self, schema: Schema, ledger: Ledger, roles: Mapping[str, RoleFactory]
    ) -> Iterator[Federation]:
        """The parties, for a run or a session; their roles are theirs."""
        from hedgerow.coordinator.federation import Federation
        from hedgerow.deployment.driving import CONNECT_SECONDS, RETURN_SECONDS, carrier_of
        from hedgerow.deployment.hold import holding

        reply, gone = self._patience.reply_seconds, self._patience.gone_seconds
        back = max(gone, RETURN_SECONDS)
        site, roster = self._site, self._roster
        with holding(site, _COMMAND):
            engine = carrier_of(site, self._relay, self._without)
            if missing := engine.await_parties(CONNECT_SECONDS + gone):
                tell(
                    f"Not connected: {', '.join(missing)}. `hedgerow coordinator status "
                    f"{site.path}` says why. Going on with the others, if they are enough."
                )
            yield Federation(engine, schema, roster, site.identity(), reply, back, site.trial)

    @property
    def _relay(self) -> str | None:
        """The socket of another runtime's relay, if one carries."""
        is_relay = self._engine_name.startswith(RELAY)
        return self._engine_name.removeprefix(RELAY) if is_relay else None


def pinned_values(roster: Roster) -> dict[str, Any]:
    """What a roster fixes of every plan, by the names that plans use."""
    return {
        "trust": roster.trust,
        "colluding": roster.colluding,
        "minimum_parties": roster.minimum,
    }


def _typed() -> Command:
    """The command of this process, which goes on with its run when it is given again."""
    from hedgerow.deployment.runs import Command

    if Path(sys.argv[0]).name not in ("hedgerow", "__main__.py"):
        return Command()  # called as a function
    words = tuple(sys.argv[1:])
    out = next((words[i + 1] for i, word in enumerate(words[:-1]) if word == "--out"), "")
    return Command(words, str(Path.cwd()), str(Path(out).resolve()) if out else "")


def parties_of(chosen: EngineOptions, data: Sequence[str] | None, part: Part = WHOLE) -> Parties:
    """The parties that a training command means, and the part of their rows."""
    if chosen.engine not in ENGINES and not chosen.engine.startswith(RELAY):
        raise SettingsError(f"unknown engine {chosen.engine!r}; known: {', '.join(ENGINES)}")
    if chosen.engine != "dask" and (flags := chosen.used_flags()):
        raise SettingsError(f"{flags[0]} belongs to --engine dask; leave it out or name the engine")
    apart = is_between_sites(chosen.engine, chosen.site)
    if part.share and (apart or chosen.engine != "local"):
        raise SettingsError(
            "--holdout parts tables of this machine, and parties at other sites or on a cluster "
            "have them elsewhere. Put the rows to hold out into a table of their own there"
        )
    if apart:
        patience = Patience(chosen.timeout_seconds, chosen.wait_seconds)
        without = chosen.without or ()
        return OtherSites(chosen.site, data or (), patience, chosen.engine, without)
    if chosen.site is not None or chosen.without:
        flag = "--site" if chosen.site is not None else "--without"
        raise SettingsError(f"{flag} is for parties at other sites; leave it out")
    if chosen.engine == "dask":
        from hedgerow.cli.cluster import OnCluster

        return OnCluster(data or (), chosen)
    return TablesHere(data or (), part)


def party_sources(data: Sequence[str]) -> dict[str, Path]:
    """Tables by party name: the text before "=", else the file's stem.

    >>> party_sources(["north=a.csv", "South Ward_2.parquet"])
    {'north': PosixPath('a.csv'), 'south-ward-2': PosixPath('South Ward_2.parquet')}
    """
    from hedgerow.protocol.identity import PARTY_NAME

    sources: dict[str, Path] = {}
    for text in data:
        name, equals, path = text.partition("=")
        if not equals or Path(text).is_file():
            path = text
            name = re.sub(r"[^a-z0-9-]+", "-", Path(text).stem.lower()).strip("-")[:40]
        if not PARTY_NAME.pattern.fullmatch(name):
            raise SettingsError(
                f"{name!r} is not {PARTY_NAME.wanted}; write --data name=path with such a name"
            )
        if name in sources:
            raise SettingsError(
                f"two tables belong to the party {name!r}; write --data name=path to tell "
                "them apart, or put the rows of one party into one file"
            )
        sources[name] = Path(path)
    return sources
