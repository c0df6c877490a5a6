"""A note of the ledger's last line: a ledger that is missing or older than it is not used silently.

The note is written after the lines that it is about. A crash in between leaves an older note,
and the ledger has that line too.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import tomli_w

from hedgerow.data.documents import Document, Within
from hedgerow.deployment.approvals import write_private
from hedgerow.deployment.start import FILE as START
from hedgerow.engines.site import Site
from hedgerow.errors import FormatError, LedgerError, SettingsError
from hedgerow.privacy.ledger.ledger import Ledger

FILE = "last-line.toml"
_NOTE = Document("note of the ledger", format=1)
_Count = Annotated[int, Within(0, 2**53)]
_SPENT = "Nothing was asked and nothing was spent."


@dataclass(frozen=True)
class LedgerHead:
    """The last line of a ledger when the note was written, and how often the party had started."""

    lines: _Count
    hash: str
    boots: _Count

    @classmethod
    def noted(cls, site: Site) -> LedgerHead | None:
        file = site.folder / FILE
        if not file.exists():
            return None
        try:
            return _NOTE.read(cls, _NOTE.load(file))
        except FormatError as error:
            raise FormatError(
                f"{error}. {file} says which line the ledger had last. {_SPENT} Put it back, or "
                "remove it if you are sure that the ledger is the newest one."
            ) from error


def note_ledger_head(site: Site, ledger: Ledger) -> None:
    """Write down how far the ledger has come."""
    note = LedgerHead(*ledger.last(), len(ledger.lines(site.name, "boot")))
    write_private(site.folder / FILE, tomli_w.dumps({"format": 1, **asdict(note)}))


def open_ledger(site: Site, renew: bool = False) -> Ledger:
    """The site's ledger; `renew` goes on although lines are lost, and only then."""
    noted = LedgerHead.noted(site)
    used = noted is not None or (site.folder / START).exists()
    absent = not site.ledger_path.exists()
    if absent and used and not renew:
        raise LedgerError(f"the ledger {site.ledger_path} is missing, {_advice(site)}")
    if absent and renew and not used:
        raise _not_needed("this party was never started")
    ledger = Ledger.open(site.ledger_path)
    try:
        count = ledger.last()[0]
        lost = not ledger.contains(noted.lines, noted.hash) if noted else used and not count
        if not (lost or absent):
            if renew:
                raise _not_needed(f"the ledger has all of its lines ({count})")
        elif renew:
            _renew(site, ledger, noted)
        elif used:
            last = f" (line {noted.lines})" if noted else ""
            raise LedgerError(
                f"the ledger {site.ledger_path} has {count} lines and not the last one that this "
                f"party wrote{last}: it is an old copy or another ledger, {_advice(site)}"
            )
    except BaseException:
        ledger.close()
        raise
    return ledger


def _renew(site: Site, ledger: Ledger, noted: LedgerHead | None) -> None:
    """Record that lines are lost, and go on counting starts: others refuse a lower count."""
    count, boots = ledger.last()[0], len(ledger.lines(site.name, "boot"))
    values = {"kept": count, "lines": noted.lines if noted else None}
    with ledger.transaction():
        ledger.append(site.name, "renew", values=values)
        for number in range(boots, noted.boots if noted else boots):
            ledger.append(site.name, "boot", values={"boot": number + 1, "lost": True})


def _advice(site: Site) -> str:
    return (
        "and this party has used it. Without it what was spent is forgotten, and the same rows "
        f"would be paid for with a budget that is already used. {_SPENT} Put the newest ledger "
        f"back. If there is none: `hedgerow party start {site.path} --new-ledger` goes on without "
        "it and says so in the ledger; lower the limits by what was spent before."
    )


def _not_needed(why: str) -> SettingsError:
    return SettingsError(
        f"--new-ledger is for a ledger that was lost, and {why}. {_SPENT} Leave it out."
    )
