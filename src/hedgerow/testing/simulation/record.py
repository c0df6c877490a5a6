"""The file of a campaign: what its histories added up to, and which seeds ran on which source.

The same seed on another source may be another history. So a record has parts, one for each source;
its counts are those of all of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedgerow.testing.simulation.source import Source
from hedgerow.testing.simulation.tally import Failure, Tally

FORMAT = 3
Ranges = list[list[int]]  # of seeds, the last one excluded


@dataclass
class Part:
    """Seeds that ran on one source."""

    source: Source
    seeds: Ranges = field(default_factory=list)
    violations: int = 0

    @property
    def histories(self) -> int:
        return sum(stop - start for start, stop in self.seeds)

    def to_dict(self) -> dict[str, Any]:
        about = {"seeds": self.seeds, "histories": self.histories, "violations": self.violations}
        return {**self.source.to_dict(), **about}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Part:
        kept = {**values}
        seeds, violations = kept.pop("seeds"), kept.pop("violations")
        del kept["histories"]
        return Part(Source.from_dict(kept), seeds, violations)


@dataclass
class Record:
    """A campaign so far."""

    backups: bool
    total: Tally = field(default_factory=Tally)
    parts: list[Part] = field(default_factory=list)

    @property
    def seeds(self) -> Ranges:
        return merged(one for part in self.parts for one in part.seeds)

    def gaps(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Ranges of seeds that are still to be run."""
        for start, end in self.seeds:
            if first < min(start, stop):
                yield first, min(start, stop)
            first = max(first, end)
        if first < stop:
            yield first, stop

    def failures_before(self, source: Source) -> list[Failure]:
        """Those of other sources that are not known to be mended."""
        found = self.total.failures
        return [one for one in found if not one.mended and one.source != source.hash]

    def add(self, source: Source, start: int, stop: int, tally: Tally) -> None:
        """Count histories of these seeds, which ran on this source."""
        for failure in tally.failures:
            failure.source = source.hash
        part = next((one for one in self.parts if one.source.is_same(source)), None)
        if part is None:
            part = Part(source)
            self.parts.append(part)
        part.seeds = merged([*part.seeds, [start, stop]])
        part.violations += len(tally.failures)
        self.total.merge(tally)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT, "command": "python -m hedgerow.testing.simulation",
            "backups": self.backups, "seeds": self.seeds,
            "parts": [part.to_dict() for part in self.parts], **self.total.to_dict(),
        }  # fmt: skip

    def write(self, file: Path) -> None:
        partial = file.with_name(file.name + ".partial")
        partial.write_text(json.dumps(self.to_dict(), indent=1) + "\n")
        os.replace(partial, file)

    @staticmethod
    def read(file: Path, backups: bool) -> Record:
        """What a file has; an empty record if there is none."""
        if not file.exists():
            return Record(backups)
        values = json.loads(file.read_text())
        if values.get("format") != FORMAT or values.get("backups") != backups:
            raise SystemExit(
                f"{file} is of another campaign; give another file, or remove it to begin anew"
            )
        parts = [Part.from_dict(one) for one in values["parts"]]
        return Record(backups, Tally.from_dict(values), parts)


def merged(ranges: Iterable[list[int]]) -> Ranges:
    """The same seeds in as few ranges as can be."""
    found: Ranges = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], stop)
        else:
            found.append([start, stop])
    return found
