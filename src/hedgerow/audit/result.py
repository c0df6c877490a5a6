"""What an audit found: the claim, the estimate and the lower bounds; as a file and in words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from hedgerow.data.cards import Card, Shown
from hedgerow.errors import FormatError

FORMAT = 1
KIND = "hedgerow audit"
GAUSSIAN = "gaussian"
BLACK_BOX = "black box"


@dataclass(frozen=True, repr=False)
class AuditResult(Shown):
    """One audit: what was promised beside what an attack on made-up rows got.

    Numbers of mu are comparable with each other; each has its epsilon at the plan's delta.
    """

    method: str
    plan: str  # hash of the audited plan
    kind: str  # "gaussian": one run, white box; "black box": many runs, the model alone
    trust: str
    unit: str
    runs: int
    releases: int
    canaries: int
    confidence: float
    delta: float
    claimed_mu: float
    claimed_epsilon: float
    largest_mu: float  # what the largest contribution of a canary is to the stated noise
    estimated_mu: float
    estimate_error: float  # its standard error
    lower_mu: float
    lower_epsilon: float
    any_lower_mu: float  # a lower bound that takes nothing for granted but fair coins
    any_lower_epsilon: float
    right_guesses: int
    violation: str = ""  # in words, if the claim is refuted

    @property
    def holds(self) -> bool:
        """Whether the audit found nothing against the claim."""
        return not self.violation

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; infinity, of a release without any noise, is the word "infinite"."""
        values = {name: _written(value) for name, value in asdict(self).items()}
        return {"kind_of_file": KIND, "format": FORMAT, "holds": self.holds, **values}

    @staticmethod
    def from_dict(document: Mapping[str, Any], source: str = "audit") -> AuditResult:
        if document.get("kind_of_file") != KIND or document.get("format") != FORMAT:
            raise FormatError(f"{source} is no audit that this version reads; run it again")
        kinds = {"str": str, "int": int, "float": float}
        try:
            values = {
                f.name: kinds[str(f.type)](_read(document[f.name])) for f in fields(AuditResult)
            }
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{source} is not a readable audit: {error!r}") from error
        return AuditResult(**values)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the audit as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(path: str | PathLike[str]) -> AuditResult:
        """Read an audit that `save` or `hedgerow audit --out` wrote."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FormatError(f"cannot read {path} as an audit: {error}") from error
        if not isinstance(document, dict):
            raise FormatError(f"{path} is no audit")
        return AuditResult.from_dict(document, str(path))

    def numbers(self) -> list[tuple[str, float, float | None]]:
        """Names with mu and epsilon, what was promised first."""
        told: list[tuple[str, float, float | None]] = [
            ("promised", self.claimed_mu, self.claimed_epsilon),
            ("estimated", self.estimated_mu, None),
            ("at least", self.lower_mu, self.lower_epsilon),
        ]
        if self.kind == GAUSSIAN:
            told.append(("at least, any mechanism", self.any_lower_mu, self.any_lower_epsilon))
        return told

    def words(self) -> str:
        """The audit in a few sentences."""
        promised = (
            f"The plan promises epsilon = {self.claimed_epsilon:.3g}"
            f"{f' at delta = {self.delta:g}' if self.delta else ''} (mu = {self.claimed_mu:.4f}) "
            f"for one {self.unit}, with trust in {_trusted(self.trust)}."
        )
        return " ".join([promised, *self._found(), self._verdict(), self._limits()])

    @property
    def _shares(self) -> list[str]:
        if self.trust != "parties":
            return []
        return [
            "Sums have the noise of all parties, so their canaries lie below the promise, which "
            "also holds against parties that know their own share of it."
        ]

    def _found(self) -> list[str]:
        sure = f"{self.confidence:.0%}"
        if self.kind == BLACK_BOX:
            return [
                f"In {self.runs:,} runs, one canary was in the table or not, and was looked for in "
                f"the finished model alone. It was told apart as under mu = "
                f"{_number(self.estimated_mu)}; with {sure} confidence mu is at least "
                f"{_number(self.lower_mu)} (epsilon {_number(self.lower_epsilon)})."
            ]
        return [
            f"In one run over made-up rows, {self.canaries:,} canaries were each in or out by a "
            f"coin, and were looked for in {self.releases:,} releases with the noise known.",
            f"They were told apart as under mu = {_number(self.estimated_mu)} (standard error "
            f"{self.estimate_error:.2g}); the largest of them contributes "
            f"{_number(self.largest_mu)} in units of the noise that is stated. With {sure} "
            f"confidence mu is at least {_number(self.lower_mu)} (epsilon "
            f"{_number(self.lower_epsilon)}), if noise is Gaussian of whatever size; and at least "
            f"{_number(self.any_lower_mu)} (epsilon {_number(self.any_lower_epsilon)}), whatever "
            f"the mechanism: {self.right_guesses:,} of {self.canaries:,} coins were guessed.",
            *self._shares,
        ]

    def _verdict(self) -> str:
        if self.violation:
            return f"VIOLATION: {self.violation}"
        return "Nothing contradicts the promise."

    def _limits(self) -> str:
        return (
            "An audit can refute a promise and never prove it: it shows this code, plan and "
            "machine on made-up rows, and says nothing about a run that somebody else altered."
        )

    def _card(self) -> Card:
        rows = tuple((name, mu, "" if e is None else e) for name, mu, e in self.numbers())
        facts = (
            ("method", self.method),
            ("holds", "nothing contradicts the promise" if self.holds else ""),
            ("canaries", self.canaries),
            ("runs", self.runs),
        )
        return Card("Audit", facts, ("number", "mu", "epsilon"), rows, alarm=self.violation)


def _written(value: Any) -> Any:
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def _read(value: Any) -> Any:
    return math.inf if value == "infinite" else value


def _number(value: float) -> str:
    return "infinity" if math.isinf(value) else f"{value:.4g}"


def _trusted(trust: str) -> str:
    return {"coordinator": "the coordinator", "parties": "the parties"}.get(trust, trust)
