"""What a set of histories added up to."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from hedgerow.testing.simulation.history import Outcome
from hedgerow.testing.simulation.states import rare


@dataclass
class Failure:
    """A seed that broke a rule, with the fewest of its faults that still do."""

    seed: int
    violations: list[str]
    faults: list[str]
    source: str = ""  # hash of the source on which it did
    mended: str = ""  # and of a later one on which the same seed breaks none

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Tally:
    """What a set of histories added up to."""

    histories: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[int] = field(default_factory=Counter)  # histories by number of faults
    finished: Counter[int] = field(default_factory=Counter)  # by number of commands that finished
    simulated_seconds: float = 0.0
    processor_seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.histories += 1
        self.counts += outcome.counts
        self.faults[len(outcome.happened)] += 1
        self.finished[outcome.counts["finished"]] += 1
        self.simulated_seconds += outcome.seconds

    def merge(self, other: Tally) -> None:
        self.histories += other.histories
        self.counts += other.counts
        self.faults += other.faults
        self.finished += other.finished
        self.simulated_seconds += other.simulated_seconds
        self.processor_seconds += other.processor_seconds
        self.failures += other.failures

    def to_dict(self) -> dict[str, Any]:
        return {
            "histories": self.histories,
            "violations": len(self.failures),
            "faults": sum(n * count for n, count in self.faults.items()),
            "median_faults": median(self.faults),
            "median_finished": median(self.finished),
            "releases": self.counts["releases"],
            "answers": self.counts["answers"],
            "simulated_days": round(self.simulated_seconds / 86_400, 1),
            "processor_seconds": round(self.processor_seconds, 1),
            "faults_in_a_history": {str(n): self.faults[n] for n in sorted(self.faults)},
            "finished_in_a_history": {str(n): self.finished[n] for n in sorted(self.finished)},
            "counts": {name: self.counts[name] for name in sorted(self.counts)},
            "rare": rare(self.counts),
            "failures": [failure.to_dict() for failure in self.failures],
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Tally:
        return Tally(
            values["histories"],
            Counter(values["counts"]),
            Counter({int(n): count for n, count in values["faults_in_a_history"].items()}),
            Counter({int(n): count for n, count in values["finished_in_a_history"].items()}),
            values["simulated_days"] * 86_400,
            values["processor_seconds"],
            [Failure(**failure) for failure in values["failures"]],
        )


def median(histogram: Counter[int]) -> int:
    """The middle of what was counted."""
    half, seen = sum(histogram.values()) / 2, 0
    for value in sorted(histogram):
        seen += histogram[value]
        if seen >= half:
            return value
    return 0
