"""The guarantee as a value: numbers, who is trusted, what is not covered; in words and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from hedgerow.data.cards import Card, Shown, listed
from hedgerow.data.documents import Document, OneOf, Within, named, shown
from hedgerow.data.schema import Schema
from hedgerow.model.changes import (
    GROUPS,
    PRIVATE,
    Change,
    after_steps,
    changes_of,
    guess_after,
)
from hedgerow.model.trust import TRUSTS, trust_named

FORMAT = 1
Guarantee = Literal["epsilon-delta", "pure", "label", "none", "not private"]
STATEMENT = Document("statement", format=FORMAT)
_Spent = Annotated[float, Within(low=0)]
_Count = Annotated[int, Within(low=0)]
_SIMULATED = "Trust is simulated here: one owner's processes saw everything"


@dataclass(frozen=True)
class Disclosure:
    """Something shown without an epsilon: to whom, about whom, what, and what measured it."""

    seen_by: str
    about: str
    what: str
    measured_by: str = "not measured"


def guess_words(chance: float) -> str:
    """How often a guess at even odds is right, as the end of a sentence about whoever guesses.

    >>> guess_words(0.5471), guess_words(0.99999)
    ('at best 54.7 % of the time', 'nearly always')
    """
    return f"at best {100 * chance:.1f} % of the time" if chance < 0.9995 else "nearly always"


def of_schema(schema: Schema) -> tuple[Disclosure, ...]:
    """What a schema shows that was drafted from rows."""
    return (Disclosure("everyone", "rows of the draft", schema.origin),) if schema.drafted else ()


@dataclass(frozen=True, repr=False)
class Statement(Shown):
    """What a model promises about the rows it was trained on."""

    guarantee: Guarantee
    epsilon: _Spent
    delta: _Spent
    trust: str
    accounting: str = "exact"
    mu: _Spent = 0.0
    unit: str = "row"
    neighbours: str = "add or remove one row"
    parties: tuple[str, ...] = ()
    colluding: _Count = 0
    minimum_parties: _Count = 1
    releases: _Count = 0
    scope: str = "this fit alone"
    simulated: bool = True
    disclosures: tuple[Disclosure, ...] = ()
    reason: str = ""
    builds_on: str = ""  # hash of a model that was there before
    builds_on_promise: str = ""  # what that one promises, or "public"
    sampled: bool = False  # whether Poisson sampling drew the rows that took part
    edits: _Count = 0  # shapes changed by hand after training
    ledger_runs: _Count = 0  # that its ledger had counted with this one; 0 if it was the first
    ledger_epsilon: _Spent = 0.0  # of all of them together
    ledger_delta: _Spent = 0.0
    ledger_mu: _Spent = 0.0
    format: int = field(default=FORMAT)

    def words(self, of: str = "model") -> str:
        """The guarantee in plain sentences, as that of a "model" or of an "evaluation"."""
        if self.guarantee == "label":
            return "\n".join([self._label_promise(), *(self._shown(d) for d in self.disclosures)])
        if self.guarantee not in PRIVATE:
            text = (
                f"NOT PRIVATE. {self.reason or f'This {of} carries no guarantee.'} "
                f"Do not publish it as a private {of}."
            )
            return "\n".join([text, *(self._shown(d) for d in self.disclosures)])
        parts = [self._promise(of), self._guesses(of)]
        if self.ledger_runs:
            parts.append(self._of_the_ledger(of))
        parts += [self._assumptions(), self._limits()]
        if self.builds_on:
            parts.append(self._measured() if of == "evaluation" else self._beginning())
        if self.edits:
            parts.append(self._edited())
        parts += [self._shown(d) for d in self.disclosures]
        return "\n".join(parts)

    def _shown(self, disclosure: Disclosure) -> str:
        return f"Shown without an epsilon: {disclosure.what} (to {disclosure.seen_by})."

    def _promise(self, of: str) -> str:
        numbers = self._numbers()
        counted = f"counted for {self.scope}, over {self.releases} releases ({self.accounting})"
        return trust_named(self.trust).promise(self, of, numbers, counted)

    @property
    def single_owner(self) -> bool:
        """Whether one owner trained on one table, so that there are no parties to speak of."""
        return self.simulated and len(self.parties) == 1

    @property
    def shown_neighbours(self) -> str:
        """What neighbouring tables differ by, in words."""
        whole = self.neighbours
        return whole.replace(" in each party", "") if self.single_owner else whole

    def best_guess(self, replaced: bool = False) -> float:
        """How often whoever takes neighbouring tables to be equally likely can be right.

        Parameters
        ----------
        replaced
            Whether the tables differ by one unit that was replaced (a changed label or value), not
            by one that was added or removed. Under trust in nobody both are the same.

        Returns
        -------
        float
            1 / 2 if nothing can be learnt, 1 if there is no promise.

        Examples
        --------
        >>> said = Statement("pure", epsilon=1.0, delta=0.0, trust="coordinator", accounting="pure")
        >>> round(said.best_guess(), 3), round(said.best_guess(replaced=True), 3)
        (0.731, 0.881)
        """
        if self.guarantee not in PRIVATE:
            return 1.0
        doubled = replaced and trust_named(self.trust).distance == 1
        return guess_after(self, 2 if doubled else 1)

    def changes(self, groups: tuple[int, ...] = GROUPS) -> tuple[Change, ...]:
        """What holds for one unit added or removed, one replaced, and for groups of units.

        Parameters
        ----------
        groups
            How many units come or go together: a family, or all that a party has, if that number is
            public.

        Returns
        -------
        tuple of Change
            Each with `what`, `units`, `epsilon`, `delta` and `best_guess`.

        Examples
        --------
        >>> said = Statement("pure", epsilon=0.5, delta=0.0, trust="coordinator", accounting="pure")
        >>> [(change.what, change.epsilon) for change in said.changes(groups=(4,))][2]
        ('4 rows added or removed', 2.0)
        """
        return changes_of(self, groups)

    @property
    def of_the_ledger(self) -> Statement:
        """The same statement about all runs that its ledger had counted, this one included."""
        if not self.ledger_runs:
            return self
        return replace(
            self, epsilon=self.ledger_epsilon, delta=self.ledger_delta, mu=self.ledger_mu,
            accounting="exact" if self.ledger_delta else "pure",
        )  # fmt: skip

    @property
    def replaced_epsilon(self) -> float:
        """Epsilon at the same delta where one unit is replaced; infinite without a promise."""
        if self.guarantee not in PRIVATE:
            return math.inf
        steps = 1 if trust_named(self.trust).distance > 1 else 2
        epsilon, delta = after_steps(self, steps)
        return epsilon if delta == self.delta else math.inf

    def _guesses(self, of: str) -> str:
        after = "this evaluation" if of == "evaluation" else "this fit"
        right = guess_words(self.best_guess())
        if trust_named(self.trust).distance > 1:
            return (
                "The best guess: whoever knows all other rows and takes even odds on which of two "
                f"possible {self.unit}s it was is right {right} after {after}."
            )
        text = (
            f"The best guess: whoever knows all other {self.unit}s and takes even odds on whether "
            f"one {self.unit} was there is right {right} after {after}."
        )
        if self.replaced_epsilon == math.inf:
            return text
        numbers = f"epsilon = {self.replaced_epsilon:.3g}"
        if self.delta:
            numbers += " at the same delta"
        return (
            f"{text} For one {self.unit} replaced (a changed label or value) it is {numbers}, and "
            f"{guess_words(self.best_guess(replaced=True))}."
        )

    def _of_the_ledger(self, of: str) -> str:
        """What all runs of the ledger promise together: about the same rows they add up."""
        together = f"epsilon = {self.ledger_epsilon:.4g}"
        together += f", delta = {self.ledger_delta:g}" if self.ledger_delta else " (delta = 0)"
        right = guess_words(self.of_the_ledger.best_guess())
        return (
            f"The ledger had counted {self.ledger_runs} runs on these rows with this {of}: "
            f"together {together}, and the best guess is then right {right}."
        )

    def _label_promise(self) -> str:
        return (
            f"LABELS ONLY. Whoever sees all that the other parties saw learns about the label of "
            f"one row no more than pure epsilon = {self.epsilon:g} allows (replace one label), "
            f"counted for {self.scope}. {self.reason} Columns have no such promise, nor has the "
            "fact that a row is there. Do not publish it as a private model."
            + (f" {_SIMULATED}." if self.simulated else "")
        )

    def _numbers(self) -> str:
        if self.guarantee == "pure":
            return f"pure epsilon = {self.epsilon:g} (delta = 0)"
        return f"epsilon = {self.epsilon:g}, delta = {self.delta:g}"

    def _beginning(self) -> str:
        before = f"It builds on another model ({self.builds_on[:12]})"
        if self.builds_on_promise == "public":
            return f"{before}, declared to be made from public rows; what is above is beyond it."
        return (
            f"{before}, which promises {self.builds_on_promise} for itself. What is above comes on "
            "top: about rows that both have seen, the two promises add up."
        )

    def _edited(self) -> str:
        times = "once" if self.edits == 1 else f"{self.edits} times"
        return (
            f"Changed by hand {times} after training, which asks nothing of any row: the promise "
            "holds, unless whoever did it looked at the rows."
        )

    def _measured(self) -> str:
        told = f"It measures the model {self.builds_on[:12]}"
        if self.builds_on_promise == "not private":
            return f"{told}, which is not private: about rows that it has seen nothing is promised."
        if self.builds_on_promise.startswith("label "):
            return (
                f"{told}, which promises {self.builds_on_promise} and nothing about columns: about "
                "rows that it has seen, labels alone are protected, and there the two add up."
            )
        return (
            f"{told}, which promises {self.builds_on_promise} for itself. About rows that the "
            "model was trained on the two add up, and so does every further evaluation; a ledger "
            "shared with training counts all of them."
        )

    def promise(self) -> str:
        """The promise in a few words, for whoever builds on the model."""
        if self.guarantee == "label":
            return f"label epsilon = {self.epsilon:g}"
        if self.guarantee not in PRIVATE:
            return "not private"
        guarantee = self._numbers()
        before = self.builds_on_promise
        return guarantee if before in ("", "public") else f"{guarantee} beyond {before}"

    def _assumptions(self) -> str:
        text = "Assumed: the ledger is not rolled back"
        if self.sampled:
            text += "; which rows were sampled for each tree stays secret, and ChaCha20 is sound"
        text += trust_named(self.trust).assumptions(self)
        if self.simulated and not self.single_owner:
            text += f". {_SIMULATED}"
        return text + "."

    def _limits(self) -> str:
        twice = "the same person in several parties"
        if self.single_owner:
            twice = "a person with several " + ("rows" if self.unit == "row" else "ids")
        others = "other fits on these rows"
        if self.ledger_runs:
            others = "fits on these rows that are not on this ledger, or later ones"
        return f"Not covered: timing, poisoned rows, {twice}, {others}."

    @property
    def alarm(self) -> str:
        """What nobody may overlook; "" where there is a guarantee for rows."""
        if self.guarantee == "label":
            return "LABELS ONLY"
        return "" if self.guarantee in PRIVATE else "NOT PRIVATE"

    def facts(self) -> tuple[tuple[str, object], ...]:
        """The guarantee by name and value, for a terminal's line and a notebook's table."""
        private = self.guarantee in PRIVATE or self.guarantee == "label"
        n_parties = len(self.parties)
        return (
            ("guarantee", self.guarantee),
            ("epsilon", self.epsilon if private else ""),
            ("delta", self.delta if self.guarantee == "epsilon-delta" else ""),
            ("unit", self.unit if private else ""),
            ("trust", self.trust if private else ""),
            ("parties", f"{n_parties}: {listed(self.parties)}" if n_parties > 1 else ""),
            ("releases", self.releases or ""),
            ("counted for", self.scope if private else ""),
        )

    def _card(self) -> Card:
        return Card("Statement", self.facts(), notes=(self.words(),), alarm=self.alarm)

    def to_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        if not self.ledger_runs:  # files from before ledgers were added up have none of these
            plain = {name: v for name, v in plain.items() if not name.startswith("ledger_")}
        plain["parties"] = list(self.parties)
        plain["disclosures"] = [asdict(d) for d in self.disclosures]
        return plain

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Statement:
        """Read a statement back; whoever wrote it may not be a friend."""
        with named("the statement"):
            told = STATEMENT.read(Statement, values)
            if told.guarantee in PRIVATE and told.trust not in TRUSTS:
                known = OneOf(tuple(TRUSTS)).advice
                raise STATEMENT.wrong(f"trust is {shown(told.trust)}; {known}")
        return told
