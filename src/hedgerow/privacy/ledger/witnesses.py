"""Heads of ledgers that parties leave with each other, so that a rolled-back ledger is noticed.

With every run a party writes a `head` line: a commitment to the line before it. The others keep it
as a `witness` line and show it at a later run. A chain that has lost lines lacks a head that others
hold. The commitment is a hash over a secret nonce, so it says nothing of the ledger; its counter
counts these lines alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hedgerow import clock
from hedgerow.packing import digest
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line

COMMITMENT = "hedgerow ledger head 1"


def commitment_of(nonce: str, head: str, count: int) -> str:
    """Hides head and count behind 32 random bytes, and binds to them: SHA-256."""
    return digest(COMMITMENT, nonce, head, str(count))


@dataclass(frozen=True)
class OwnHead:
    """A head that this party left with others; on its own ledger alone."""

    commitment: str
    count: int  # of this party's heads
    time: str  # UTC, by its own clock
    line: int  # the line that it commits to
    head: str  # the hash of that line
    nonce: str  # 32 bytes, hex
    run: str
    shown_by: tuple[str, ...]  # who showed earlier heads in this run
    key: str  # that signed it

    @property
    def is_sound(self) -> bool:
        """Whether the commitment opens to what the line says."""
        return self.commitment == commitment_of(self.nonce, self.head, self.count)


@dataclass(frozen=True)
class KeptHead:
    """Another party's head, as that party signed it."""

    party: str
    key: str  # that signed it
    commitment: str
    count: int
    time: str  # UTC, by that party's clock
    joined: str  # hash of the announcements of its run
    signature: str


@dataclass(frozen=True)
class Gap:
    """Something of this party that another one shows and this chain does not have.

    A head that it left; or a start (`boot`) that others joined with, without a head.
    """

    commitment: str  # "" of a start
    count: int  # of the head
    time: str  # when it was signed, by this party's clock; of a start: when the other one saw it
    shown_by: str
    found: str  # UTC
    settled: bool = False
    boot: int = 0


@dataclass(frozen=True)
class Settlement:
    """A person's word that a gap is known; what could have been spent in it is booked."""

    name: str
    reason: str
    role: str
    since: str  # UTC: the last head before the gap; "" if there is none, and all before counts
    until: str  # UTC
    mu: float  # booked for all time
    month_mu: float  # booked for the 31 days after it
    labels: float  # pure epsilon of labels that is booked
    bound: str  # which limit the booked amount follows from, in words
    # Where runs were counted: the last head and the last start that were paid for. 0 heads: a limit
    # bounds everything in that time.
    heads: int = 0
    starts: int = 0

    def covers(self, time: str, count: int = 0, boot: int = 0) -> bool:
        """Whether what was signed then is paid for by this; a head by its count, or a start."""
        paid = not self.heads or (count <= self.heads and boot <= self.starts)
        return paid and self.since <= time <= self.until


def own_heads(ledger: Ledger, owner: str) -> list[OwnHead]:
    """All heads that an owner left with others, in order."""
    return [_own(line) for line in ledger.lines(owner, "head")]


def leave_head(ledger: Ledger, owner: str, run: str, shown_by: Sequence[str], key: str) -> OwnHead:
    """Write a head of all lines so far; on disk before anybody gets it."""
    with ledger.transaction():
        line, head = ledger.last()
        count = 1 + max(_counts(ledger, owner), default=0)
        nonce = secrets.token_hex(32)
        commitment = commitment_of(nonce, head, count)
        values = {
            "count": count, "line": line, "head": head, "nonce": nonce, "of": run,
            "shown_by": list(shown_by), "key": key,
        }  # fmt: skip
        return _own(ledger.append(owner, "head", commitment, values=values))


def _counts(ledger: Ledger, owner: str) -> list[int]:
    """Counters that this owner has used, those of lost lines too: it only rises."""
    lines = [*ledger.lines(owner, "head"), *ledger.lines(owner, "gap")]
    return [int(line.values["count"]) for line in lines]


def has_head(ledger: Ledger, owner: str, commitment: str) -> bool:
    """Whether the chain has the head that somebody shows, and all lines before it."""
    found = [_own(line) for line in ledger.lines(owner, "head", commitment)]
    return any(one.is_sound and ledger.contains(one.line, one.head) for one in found)


def keep_head(ledger: Ledger, owner: str, head: KeptHead) -> None:
    """Keep another party's head, unless a later one is kept already."""
    with ledger.transaction():
        known = kept_head(ledger, owner, head.party)
        if known is not None and known.key == head.key and known.count >= head.count:
            return  # runs overlap, and this one was joined before
        values = {key: value for key, value in vars(head).items() if key != "party"}
        ledger.append(owner, "witness", head.party, values=values)


def kept_head(ledger: Ledger, owner: str, party: str) -> KeptHead | None:
    """The last head of another party that an owner keeps."""
    newest = ledger.newest(owner, "witness", party)
    lines = ledger.lines(owner, "witness", party, after=newest - 1) if newest else []
    return KeptHead(party, **lines[0].values) if lines else None


def kept_heads(ledger: Ledger, owner: str) -> list[KeptHead]:
    """The last head of every other party that an owner keeps, by name."""
    names = sorted({line.run for line in ledger.lines(owner, "witness")})
    kept = (kept_head(ledger, owner, name) for name in names)
    return [one for one in kept if one is not None]


def note_gap(ledger: Ledger, owner: str, gap: Gap) -> None:
    """Put on record that the chain lacks something; once for each."""
    with ledger.transaction():
        what = gap.commitment or f"start {gap.boot}"
        if not ledger.lines(owner, "gap", what):
            values = {"count": gap.count, "time": gap.time, "shown_by": gap.shown_by}
            ledger.append(owner, "gap", what, values={**values, "boot": gap.boot})


def gaps_of(ledger: Ledger, owner: str) -> list[Gap]:
    """Every gap that was found, and whether a person has settled it."""
    lines, found = ledger.lines(owner, "gap"), []
    settled = settlements(ledger, owner) if lines else []
    for line in lines:
        told, count, boot = line.values, int(line.values["count"]), int(line.values["boot"])
        covered = any(one.covers(told["time"], count, boot) for one in settled)
        about = (count, str(told["time"]), str(told["shown_by"]))
        found.append(Gap("" if boot else line.run, *about, line.time, covered, boot))
    return found


def open_gaps(ledger: Ledger, owner: str) -> list[Gap]:
    """Gaps that nobody has settled; while there is one, the party takes no part in anything."""
    return [gap for gap in gaps_of(ledger, owner) if not gap.settled]


def settlements(ledger: Ledger, owner: str) -> list[Settlement]:
    """What people settled, in order."""
    return [Settlement(**line.values) for line in ledger.lines(owner, "settle")]


def enter_settlement(ledger: Ledger, owner: str, settlement: Settlement) -> Line:
    values = asdict(settlement)
    if not settlement.heads:  # as lines of earlier versions are
        del values["heads"], values["starts"]
    return ledger.append(owner, "settle", values=values)


def witnesses_of(ledger: Ledger, name: str) -> dict[str, Any]:
    """The ledger's head; the last head left with others; theirs that are kept here; lost lines."""
    line, head = ledger.last()
    heads = own_heads(ledger, name)
    last = asdict(heads[-1]) if heads else None
    if last is not None:
        del last["nonce"]  # whoever has it can open the commitment
    return {
        "lines": line,
        "head": head,
        "left": last,
        "kept": [asdict(kept) for kept in kept_heads(ledger, name)],
        "gaps": [asdict(gap) for gap in gaps_of(ledger, name)],
        "settled": [asdict(one) for one in settlements(ledger, name)],
    }


def _own(line: Line) -> OwnHead:
    told = line.values
    return OwnHead(
        line.run, int(told["count"]), line.time, int(told["line"]), str(told["head"]),
        str(told["nonce"]), str(told["of"]), tuple(told["shown_by"]), str(told["key"]),
    )  # fmt: skip


def now_text() -> str:
    """The time as heads have it."""
    return clock.utc_now().isoformat(timespec="milliseconds")
