"""A conversation of parties, driven by the coordinator, who carries letters it cannot read."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.coordinator.federation import Federation, RefusedBy
from hedgerow.errors import ExchangeFailed, FormatError
from hedgerow.packing import pack, unpack
from hedgerow.privacy.ledger.ledger import COORDINATOR, Ledger
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Announcement
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import REFUSALS, Message
from hedgerow.protocol.replies import ReceivedReply
from hedgerow.protocol.roles import Agreement


@dataclass(frozen=True)
class Reported:
    """What came of one step: reports by party, and whether all are done."""

    step: int
    reports: Mapping[str, bytes]
    done: bool


class Conversation:
    """One agreement among the parties of a federation, carried step by step.

    Parameters
    ----------
    federation : the parties; their programs live with them
    agreement : what is done, and what it shows to whom
    ledger : the coordinator's, where the agreement is put on record first
    observe : called with what every step reported
    seconds : the time that a party may take for one step
    """

    def __init__(
        self,
        federation: Federation,
        agreement: Agreement,
        ledger: Ledger,
        observe: Callable[[Reported], None] | None = None,
        seconds: float = 600.0,
    ) -> None:
        self._transport, self._agreement = federation.transport, agreement
        self._roster, self._ledger = federation.roster, ledger
        self._observe, self._seconds = observe, seconds
        self._keys = MaskKeys()
        self._announced: dict[str, Announcement] = {}

    def run(self, most_steps: int = 1_000_000) -> dict[str, list[bytes]]:
        """All steps, until every party is done; returns the reports of each party."""
        self._begin()
        reports: dict[str, list[bytes]] = {name: [] for name in self._agreement.parties}
        letters: dict[str, dict[str, Any]] = {name: {} for name in self._agreement.parties}
        for number in range(1, most_steps + 1):
            letters, found = self._step(number, letters)
            for name, report in found.reports.items():
                reports[name].append(report)
            if self._observe is not None:
                self._observe(found)
            if found.done:
                return reports
        raise ExchangeFailed(
            f"the parties were not done after {most_steps} steps; no model was made"
        )

    def _begin(self) -> None:
        agreement, names = self._agreement, self._agreement.parties
        values = {
            "agreement": agreement.to_dict(), "roster": self._roster.hash,
            "nonce": secrets.token_hex(16),
        }  # fmt: skip
        opened = self._ask(dict.fromkeys(names, messages.plain("agree", values)), "opened")
        for name, reply in opened.items():
            announced = Announcement.from_dict(reply.values.get("announcement", {}))
            if announced.name != name:
                raise ExchangeFailed(f"{name} announced another party's key; nothing was shown")
            self._announced[name] = announced
        # On record here before any party shows anything.
        record = {"hash": agreement.hash, "agreement": agreement.to_dict()}
        if not self._ledger.lines(COORDINATOR, "disclose", agreement.run):
            self._ledger.append(COORDINATOR, "disclose", agreement.run, values=record)
        announcements = [self._announced[name].to_dict() for name in names]
        meeting = messages.plain("meet", {"run": agreement.run, "announcements": announcements})
        self._ask(dict.fromkeys(names, meeting), "joined")

    def _step(
        self, number: int, letters: Mapping[str, Mapping[str, Any]]
    ) -> tuple[dict[str, dict[str, Any]], Reported]:
        steps = {name: self._message(number, letters[name]) for name in letters}
        replies = self._ask(steps, "letters")
        written: dict[str, dict[str, Any]] = {name: {} for name in letters}
        reports, done = {}, True
        for writer, reply in replies.items():
            values, arrays = unpack(reply.body)
            for i, reader in enumerate(values["readers"]):
                if reader == writer or reader not in written:
                    raise ExchangeFailed(f"{writer} wrote to {reader!r}, who takes no part")
                written[reader][writer] = arrays[f"letter{i}"]
            report = self._report(writer, steps[writer], arrays["report"].tobytes())
            if report:
                reports[writer] = report
            done &= values["done"] is True
        return written, Reported(number, reports, done)

    def _message(self, number: int, letters: Mapping[str, Any]) -> Message:
        writers = sorted(letters)
        values = {
            "run": self._agreement.run, "step": number, "writers": writers,
            "reply_to": self._keys.public,
        }  # fmt: skip
        arrays = {f"letter{i}": np.asarray(letters[w]) for i, w in enumerate(writers)}
        return Message("letters", pack(values, arrays))

    def _report(self, writer: str, message: Message, sealed: bytes) -> bytes:
        return self._keys.unseal(self._announced[writer].key, message.hash, writer, sealed)

    def _ask(self, by_name: Mapping[str, Message], wanted: str) -> dict[str, ReceivedReply]:
        replies = self._transport.send(by_name, wanted, self._seconds)
        for name, reply in replies.items():
            if reply.type == "refusal":
                word = reply.values.get("word")
                raise RefusedBy(name, word if word in REFUSALS else "failed")
        if missing := [name for name in by_name if name not in replies]:
            raise ExchangeFailed(
                f"no answer from {', '.join(missing)}. What was shown before stays shown; there is "
                "no model. Start the parties, then run the same command again."
            )
        return replies


def read_report(report: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """A report as packed values and arrays."""
    try:
        return unpack(report)
    except FormatError as error:
        raise ExchangeFailed("a party's report is not readable; there is no model") from error
