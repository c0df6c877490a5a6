"""Which ledger counts a data set: one for each, below the user's state folder, found by its files.

A ledger remembers the files whose rows it counts, by their resolved paths. Trainings on one file
are one total, from whichever folder they are started and wherever their models go; a training on
several files counts with whatever was trained on any of them. A copy under another path is another
data set: nothing here reads rows to notice it.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.errors import LedgerError, PlanError, SettingsError

if TYPE_CHECKING:
    from hedgerow.cli.options import LedgerOptions
    from hedgerow.cli.parties import Parties
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.ledger.ledger import Ledger

SUFFIX = ".ledger"
KIND = "data"  # of the line that names files
WAIT_SECONDS = 10.0  # for another process, which holds a ledger while it commits
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_NOTHING = "Nothing was asked and nothing was spent."


@dataclass(frozen=True)
class DataSet:
    """A ledger of the state folder, and the files that it counts."""

    path: Path
    files: tuple[str, ...]
    readable: bool = True  # else nobody knows which files it counts

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(SUFFIX)

    def counts(self, file: Path) -> bool:
        """Whether rows of a file, or of some file in a folder, are counted here."""
        known = [Path(one) for one in self.files]
        return any(file == one or file in one.parents or one in file.parents for one in known)


def ledgers_folder() -> Path:
    """Where ledgers lie that nobody named: outside of projects, which are copied and committed."""
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return home / "hedgerow" / "ledgers"


def data_sets() -> list[DataSet]:
    """All ledgers of the state folder by name."""
    paths = sorted(ledgers_folder().glob(f"*{SUFFIX}"))
    files = [_files_in(path) for path in paths]
    return [
        DataSet(path, known or (), known is not None)
        for path, known in zip(paths, files, strict=True)
    ]


def ledger_place(chosen: LedgerOptions, parties: Parties) -> Path:
    """Where the ledger of a command lies: as it was named, at the site, or that of the files.

    --ledger comes first, then HEDGEROW_LEDGER; then --data-name or HEDGEROW_DATA_NAME.
    """
    named = chosen.ledger or _from_environment("HEDGEROW_LEDGER")
    if chosen.ledger is not None and chosen.data_name is not None:
        raise SettingsError(f"--ledger and --data-name both name a ledger; keep one. {_NOTHING}")
    if named is not None and chosen.data_name is None:
        return Path(named)
    if (own := parties.site_ledger) is not None:
        if chosen.data_name is not None:
            raise SettingsError(
                f"--data-name is for tables of this machine; a site has one ledger. {_NOTHING}"
            )
        return own
    name = chosen.data_name or _from_environment("HEDGEROW_DATA_NAME")
    return _place_of([Path(file).resolve() for file in parties.files], name)


def open_ledger(chosen: LedgerOptions, parties: Parties, beside: Path | None = None) -> Ledger:
    """The ledger of a command, opened; one of the state folder notes the files that it counts.

    `beside` is where the ledger would lie by the rule of earlier versions.
    """
    from hedgerow.privacy.ledger.ledger import Ledger

    place, folder = ledger_place(chosen, parties), ledgers_folder()
    if place.parent != folder:
        return Ledger.open(place)
    if beside is not None and beside.is_file():
        raise LedgerError(
            f"{beside} counts what was spent on these rows: it was made where ledgers lay beside "
            f"their models. {_NOTHING} Give --ledger {beside} to go on with it, also for other "
            "models of the same rows."
        )
    with _alone(folder):  # two first trainings at once find each other's files
        place = ledger_place(chosen, parties)
        ledger = Ledger.open(place)
        try:
            _note_files(ledger, [str(Path(file).resolve()) for file in parties.files])
        except BaseException:
            ledger.close()
            raise
    return ledger


def check_not_forgotten(ledger: Ledger, plan: Plan, planned: Path, result: Path) -> None:
    """Refuse to pay again for a run that another ledger has, or a ledger that is gone had."""
    if ledger.lines(kind="reserve", run=plan.run):
        return
    for known in data_sets():
        if not known.readable:
            raise _unreadable(known, f"run {plan.run}")
        if known.path != ledger.path and _has_run(known.path, plan.run):
            raise PlanError(
                f"run {plan.run} of {planned} was started on the ledger {known.name} "
                f"({known.path}), which counts {', '.join(known.files)}. {_NOTHING} Give these "
                f"files, or --ledger {known.path} if the same rows lie elsewhere now."
            )
    if result.exists():
        raise LedgerError(
            f"{result} is there, and the ledger {ledger.path} has no line of its run {plan.run}: "
            "it is an older copy or another one, or it was removed, and what was spent would be "
            f"paid again and counted once. {_NOTHING} Put the ledger back or name it with "
            f"--ledger; for a new run choose another --out."
        )


def ledger_given(text: str | None, data: Sequence[str] | None) -> Path:
    """The ledger that somebody wants to look at: a file, a name, or that of some tables."""
    if text is not None and data:
        raise SettingsError("a ledger and --data both say which ledger is meant; keep one")
    if data:
        from hedgerow.cli.parties import party_sources

        files = [Path(file).resolve() for file in party_sources(data).values()]
        found = [known.path for known in data_sets() if any(known.counts(file) for file in files)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(str(file) for file in files)
        raise LedgerError(f"{len(found)} ledgers count {names}; `hedgerow ledger list` has all")
    text = text or _from_environment("HEDGEROW_LEDGER")
    if text is not None:
        named = ledgers_folder() / f"{text}{SUFFIX}"
        return named if not Path(text).exists() and named.is_file() else Path(text)
    found = [known.path for known in data_sets()]
    if len(found) == 1:
        return found[0]
    raise LedgerError(
        f"there are {len(found)} ledgers in {ledgers_folder()}; say which is meant by its name, "
        "its file, or --data with the table that it counts. `hedgerow ledger list` has all"
    )


def ledger_of_run(run: str) -> Path | None:
    """The ledger of the state folder that has reserved a run."""
    places = (known.path for known in data_sets() if _has_run(known.path, run))
    return next(places, None) if run else None


def _place_of(files: Sequence[Path], name: str | None) -> Path:
    all_known = data_sets()
    counted = [known for known in all_known if any(known.counts(file) for file in files)]
    # A file that is counted is so by one ledger alone. Of any other one a ledger that cannot be
    # read may know what it has cost, and a new one would forget it.
    for file in files:
        lost = [known for known in all_known if not known.readable]
        if lost and not any(known.counts(file) for known in counted):
            raise _unreadable(lost[0], str(file))
    if name is not None:
        if not _NAME.fullmatch(name):
            raise SettingsError(
                f"{name!r} is no name of a data set: it becomes a file's name, so use 1 to 80 "
                f"letters, digits, hyphens, dots and underscores. {_NOTHING}"
            )
        counted = [known for known in counted if known.name != name]
    if len(counted) > (0 if name is not None else 1):
        ledgers = "; ".join(f"{one.name} counts {', '.join(one.files)}" for one in counted)
        raise LedgerError(
            f"some of these rows are counted elsewhere: {ledgers}. Another ledger would not know "
            f"what they have cost. {_NOTHING} Use the same name or files, or say with --ledger "
            "FILE which ledger is to count, and state the others beside it."
        )
    folder = ledgers_folder()
    if name is not None:
        return folder / f"{name}{SUFFIX}"
    return counted[0].path if counted else folder / f"{_usual_name(files)}{SUFFIX}"


def _unreadable(known: DataSet, what: str) -> LedgerError:
    return LedgerError(
        f"the ledger {known.path} cannot be read: it is damaged, or a process that was stopped "
        f"holds it. It may count {what}. {_NOTHING} End that process or put the last good copy "
        "back; or say with --ledger FILE which ledger is to count."
    )


def _usual_name(files: Sequence[Path]) -> str:
    """The file's own name, or the folder's where there are several; and a few digits of a hash."""
    from hedgerow.packing import digest

    first = sorted(files)[0]
    shown = first.stem if len(files) == 1 else first.parent.name
    text = re.sub(r"[^a-z0-9]+", "-", shown.lower()).strip("-")[:40] or "rows"
    return f"{text}-{digest('hedgerow data set 1', *sorted(map(str, files)))[:8]}"


def _note_files(ledger: Ledger, files: Sequence[str]) -> None:
    from hedgerow.privacy.ledger.store import COORDINATOR

    with ledger.transaction():
        known = [line.values["files"] for line in ledger.lines(COORDINATOR, KIND)]
        new = sorted(set(files) - {file for listed in known for file in listed})
        if new:
            ledger.append(COORDINATOR, KIND, values={"files": new})


def _files_in(path: Path) -> tuple[str, ...] | None:
    """Files that a ledger counts; its chain is walked when it is opened, not to find it."""
    from hedgerow.packing import unpack

    bodies = _peek(path, "SELECT body FROM line WHERE run = '' AND kind = ?", KIND)
    if bodies is None:
        return None
    return tuple(str(file) for (body,) in bodies for file in unpack(body)[0]["files"])


def _has_run(path: Path, run: str) -> bool:
    return bool(_peek(path, "SELECT 1 FROM line WHERE run = ? AND kind = 'reserve'", run))


def _peek(path: Path, query: str, value: str) -> list[tuple[bytes]] | None:
    """What a query finds in a ledger; None if it cannot be read."""
    try:
        with closing(sqlite3.connect(path, timeout=WAIT_SECONDS)) as connection:
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return []  # another process is making it
            return connection.execute(query, (value,)).fetchall()
    except sqlite3.DatabaseError:
        return None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other commands from choosing a ledger at the same time."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / ".choosing", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LedgerError(
            f"cannot open a ledger in {folder}: {error.strerror or error}. {_NOTHING} Name one "
            "with --ledger FILE, or set XDG_STATE_HOME."
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _from_environment(name: str) -> str | None:
    return os.environ.get(name) or None
