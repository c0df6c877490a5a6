"""A session of parties, driven by the coordinator, who carries messages it cannot read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.refused import raise_refusals
from hedgerow.coordinator.witnesses import asking_to_show, joining_with_shows, leave_heads
from hedgerow.errors import BudgetExceeded, PlanError, SessionFailed
from hedgerow.packing import unpack
from hedgerow.privacy.ledger.labels import label_spending
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import budget_of
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.protocol.handshake import (
    JOIN_SESSION,
    JOINED,
    OPEN_SESSION,
    OPENED,
    announced_in,
    joining_message,
    opening_message,
)
from hedgerow.protocol.identity import Announcement
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Message, Refusal
from hedgerow.protocol.replies import PartyReply, ReceivedReply
from hedgerow.protocol.roles import Agreement, Step
from hedgerow.protocol.session_steps import STEP, Delivery, StepReply, messages_in
from hedgerow.protocol.witnesses import SHOWN


@dataclass(frozen=True)
class Reported:
    """What came of one step: reports by party, and whether all are done."""

    step: int
    reports: Mapping[str, bytes]
    done: bool


class Session:
    """One agreement among the parties of a federation, carried step by step.

    Parameters
    ----------
    federation : the parties; their roles live with them
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
        self._check_budget()
        self._begin()
        reports: dict[str, list[bytes]] = {name: [] for name in self._agreement.parties}
        inboxes: dict[str, dict[str, bytes]] = {name: {} for name in self._agreement.parties}
        for number in range(1, most_steps + 1):
            inboxes, reported = self._step(number, inboxes)
            for name, report in reported.reports.items():
                reports[name].append(report)
            if self._observe is not None:
                self._observe(reported)
            if reported.done:
                return reports
        raise SessionFailed(
            f"the parties were not done after {most_steps} steps; no model was made"
        )

    def _check_budget(self) -> None:
        """What labels pay must fit the ledger's budget, beside all that they have paid on it.

        It is pure, and simply adds up; like a party's limits it is counted beside other runs.
        """
        agreement, budget = self._agreement, budget_of(self._ledger)
        epsilon = sum(agreement.spends.values())
        if self._is_recorded or not epsilon or budget is None:
            return
        before = label_spending(self._ledger, COORDINATOR)
        if before + epsilon > budget.epsilon * (1 + 1e-9):
            raise BudgetExceeded(
                f"The run would take the epsilon of labels from {before:.3f} to "
                f"{before + epsilon:.3f}, over the budget of {budget.epsilon:g}. No party was "
                "asked and nothing was spent. Train with a smaller epsilon, or end the use of "
                "these labels."
            )

    @property
    def _is_recorded(self) -> bool:
        """Whether it is on the ledger; PlanError if another one is, under the same name."""
        agreement = self._agreement
        recorded = self._ledger.lines(COORDINATOR, "disclose", agreement.run)
        if recorded and recorded[0].values["hash"] != agreement.hash:
            raise PlanError(
                f"run {agreement.run} is on record with another agreement. Nothing was shown. Run "
                "it as it was agreed on, or under a new name."
            )
        return bool(recorded)

    def _begin(self) -> None:
        """The handshake; the agreement is on record here before any party shows anything."""
        agreement, names = self._agreement, self._agreement.parties
        subject = {"agreement": agreement.to_dict()}
        opening = opening_message(OPEN_SESSION, subject, self._roster)
        self._announced = announced_in(self._ask(dict.fromkeys(names, opening), OPENED))
        for name in names:
            if name not in self._announced:
                raise SessionFailed(f"{name} announced another party's key; nothing was shown")
        record = {"hash": agreement.hash, "agreement": agreement.to_dict()}
        with self._ledger.transaction():
            self._check_budget()  # others may have been entered since
            if not self._is_recorded:
                self._ledger.append(COORDINATOR, "disclose", agreement.run, values=record)
        run, announced = agreement.run, self._announced
        by_name = dict.fromkeys(names, joining_message(JOIN_SESSION, run, announced))
        if not self._transport.engine.simulated:
            shown = self._ask(dict.fromkeys(names, asking_to_show(run, announced)), SHOWN)
            by_name = joining_with_shows(JOIN_SESSION, run, announced, shown)
        joined = self._ask(by_name, JOINED)
        leave_heads(self._transport, run, joined, self._seconds)

    def _step(
        self, number: int, inboxes: Mapping[str, Mapping[str, bytes]]
    ) -> tuple[dict[str, dict[str, bytes]], Reported]:
        delivery = Delivery(self._agreement.run, number, self._keys.public, inboxes)
        hands_over = self._transport.hands_over
        steps = delivery.handed_over() if hands_over else delivery.travelling()
        replies = self._ask(steps, STEP)
        sent: dict[str, dict[str, bytes]] = {name: {} for name in inboxes}
        reports, done = {}, True
        for sender, reply in replies.items():
            taken = self._taken(sender, steps[sender], reply)
            for recipient, message in taken.messages.items():
                if recipient == sender or recipient not in sent:
                    raise SessionFailed(f"{sender} wrote to {recipient!r}, who takes no part")
                sent[recipient][sender] = message
            if taken.report:
                reports[sender] = taken.report
            done &= taken.done
        return sent, Reported(number, reports, done)

    def _taken(self, sender: str, message: Message, reply: ReceivedReply) -> Step:
        """What a party did; its messages are sealed unless they were handed over."""
        if isinstance(reply, PartyReply) and isinstance(reply.reply, StepReply):
            return reply.reply.taken
        try:
            values, arrays = unpack(reply.body)
            sealed = dict(zip(values["readers"], messages_in(reply.body), strict=True))
            key, report = self._announced[sender].key, arrays["report"].tobytes()
            opened = self._keys.unseal(key, message.hash, sender, report)
        except (KeyError, TypeError, ValueError, Refusal) as error:
            raise SessionFailed(
                f"the reply of {sender} is not readable. What was shown before stays shown; there "
                f"is no model. Run it again once {sender} runs the same version."
            ) from error
        return Step(sealed, opened, values["done"] is True)

    def _ask(self, by_name: Mapping[str, Message], wanted: str) -> dict[str, ReceivedReply]:
        replies = self._transport.send(by_name, wanted, self._seconds)
        raise_refusals(replies)
        if missing := [name for name in by_name if name not in replies]:
            raise SessionFailed(
                f"no answer from {', '.join(missing)}. What was shown before stays shown; there is "
                "no model. Start the parties, then run the same command again."
            )
        return replies
