"""What a schema does to the rows of a table, counted exactly, for the eyes of their owner alone.

The counts are facts about rows that no epsilon pays for. They go to the owner's own screen and
nowhere else: no warning, log, exception, fit, model or report may call this module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid, base_grid, encode_edges
from hedgerow.data.columns import Numbers, positions_in
from hedgerow.data.csv_format import PLAIN, CsvFormat
from hedgerow.data.encoding import Persons
from hedgerow.data.readers import Stream, one_column, stream_of
from hedgerow.data.schema_parts import Label, Numeric
from hedgerow.data.survival import columns_given
from hedgerow.data.values import Value
from hedgerow.data.weights import Weight

if TYPE_CHECKING:
    from hedgerow.data.schema import Schema

MOST_NAMED = 20  # columns that are not used


@dataclass(frozen=True)
class Finding:
    """One thing that the owner should look at, in a sentence; refused tables cannot be used."""

    column: str
    what: str
    n_rows: int
    text: str
    refused: bool = False


@dataclass(frozen=True)
class TableCheck:
    """How a table fits a schema: exact counts, so for its owner's eyes alone.

    >>> schema = Schema.from_bounds({"age": (0, 1)}, classes=["no", "yes"])
    >>> print(schema.check({"age": [30, 41, 52], "label": ["no", "yes", "no"]}))
    table: 3 rows, which can be used. Exact counts, for the eyes of their owner alone:
    age: 100 % of 3 values lie above the upper bound 1
    age: all 3 values lie in one of 155 cells, so no tree can tell them apart; give bounds near them
    """

    source: str
    n_rows: int
    findings: tuple[Finding, ...]
    unused: tuple[str, ...] = ()  # columns of the table that the schema does not have

    @property
    def fits(self) -> bool:
        """Whether the table could be used as it is."""
        return self.n_rows > 0 and not any(finding.refused for finding in self.findings)

    def words(self) -> str:
        """The findings in sentences, one a line."""
        state = "which can be used" if self.fits else "and it is refused as it is"
        head = f"{self.source}: {self.n_rows:,} rows, {state}. "
        told = [finding.text for finding in self.findings]
        if told:
            head += "Exact counts, for the eyes of their owner alone:"
        else:
            head += "Nothing is clipped, unlisted, missing or constant."
        if self.unused:
            names = ", ".join(map(repr, self.unused[:MOST_NAMED]))
            more = f" and {len(self.unused) - MOST_NAMED} more" * (len(self.unused) > MOST_NAMED)
            told.append(f"Not used, because the schema has no such column: {names}{more}")
        return "\n".join([head, *told])

    __str__ = __repr__ = words

    def to_dict(self) -> dict[str, Any]:
        """The same for programs of the owner."""
        found = [asdict(finding) for finding in self.findings]
        unused = list(self.unused)
        return {"rows": self.n_rows, "fits": self.fits, "findings": found, "unused": unused}


def check_table(
    schema: Schema,
    data: Any,
    target: Any = None,
    source: str = "table",
    some: bool = False,
    weights: Any = None,
) -> TableCheck:
    """Count what the schema clips, does not list or lacks in a table, and what never varies.

    Labels are `target`, or else the table's label column, if it has one; so it is with `weights`
    and the weight column. With `some` columns of the schema may be absent.
    """
    stream = stream_of(data, source, schema.csv)
    weight = schema.weight
    label_columns = schema.label.columns
    special = (*label_columns, schema.unit.column or "", weight.column if weight else "")
    present = stream.present([*schema.names, *special])
    named = stream.names is not None
    tallies: dict[str, _Tally] = {
        grid.column.name: _column_tally(grid, stream)
        for grid in base_grid(schema)
        if grid.column.name in present or not (some and named)
    }
    n_columns = len(tallies)
    if target is None and present.issuperset(label_columns):
        tallies |= _label_tallies(schema.label, stream.source, stream.csv)
    if schema.unit.column and (schema.unit.column in present or not some):
        tallies[schema.unit.column] = _PersonTally(
            schema.unit.column, schema.unit.at_most, stream.source
        )
    if weight and weights is None and (weight.column in present or not some):
        tallies[weight.column] = _WeightTally(weight, stream.source, stream.csv)
    _read(stream, tallies, len(tallies) - n_columns)
    n_rows = max((tally.n_rows for tally in tallies.values()), default=0)
    if target is not None:
        labels = _label_tallies(schema.label, stream.source, PLAIN)
        tallies |= labels
        columns = columns_given(target, schema.label, stream.source)
        for tally, column in zip(labels.values(), columns, strict=True):
            tally.read(one_column(column, stream.source))
    if weight and weights is not None:
        tallies[weight.column] = given = _WeightTally(weight, stream.source, PLAIN)
        given.read(one_column(weights, stream.source))
    findings = [finding for tally in tallies.values() for finding in tally.findings()]
    known = {*schema.names, *label_columns, schema.unit.column}
    unused = tuple(name for name in stream.names or () if name not in known)
    return TableCheck(stream.source, n_rows, tuple(findings), unused)


def _read(stream: Stream, tallies: dict[str, _Tally], n_named: int) -> None:
    readers, places = list(tallies.values()), stream.find(list(tallies), n_named=n_named)
    for first in range(0, len(places), stream.at_once):
        group = places[first : first + stream.at_once]
        for batch in stream.batches(group):
            for j in range(len(group)):
                readers[first + j].read(batch.column(j))


class _Tally(ABC):
    """Counts of one column."""

    def __init__(self, name: str) -> None:
        self.name, self.n_rows = name, 0

    @abstractmethod
    def read(self, values: Any) -> None:
        """Count the values of one batch."""

    @abstractmethod
    def findings(self) -> list[Finding]:
        """What the owner should know, once all batches were read."""

    def found(self, what: str, n_rows: int, text: str, refused: bool = False) -> Finding:
        return Finding(self.name, what, n_rows, f"{self.name}: {text}", refused)

    def missing(self, n_missing: int, allowed: bool) -> list[Finding]:
        """The finding on rows without a value."""
        if not n_missing:
            return []
        text = f"{_share(n_missing, self.n_rows)} of {self.n_rows:,} rows have no value"
        refused = "" if allowed else ", and such rows are refused"
        return [self.found("missing", n_missing, text + refused, not allowed)]

    def constant(self, n_present: int) -> Finding:
        text = f"all {n_present:,} values are the same; leave the column out, it helps no model"
        return self.found("constant", n_present, text)


class _NumberTally(_Tally):
    """Counts of a column of numbers with bounds."""

    def __init__(
        self, name: str, lower: float, upper: float, source: str, written: CsvFormat,
        missing: bool, grid: ColumnGrid | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._lower, self._upper, self._allowed, self._grid = lower, upper, missing, grid
        self._numbers = Numbers(f"{source}: column {name!r}", written)
        self._absent = self._below = self._above = 0
        self._least, self._most = np.inf, -np.inf
        self._cells: NDArray[np.bool_] = np.zeros(grid.n_codes if grid else 1, bool)  # (cell,)

    def read(self, values: Any) -> None:
        numbers = np.asarray(self._numbers.read(values))
        self.n_rows += numbers.size
        present = numbers[~np.isnan(numbers)] if numbers.dtype.kind == "f" else numbers
        self._absent += numbers.size - present.size
        if not present.size:
            return
        self._below += int(np.sum(present < self._lower))
        self._above += int(np.sum(present > self._upper))
        self._least = min(self._least, float(present.min()))
        self._most = max(self._most, float(present.max()))
        if self._grid is not None:
            self._cells[encode_edges(present, self._grid.edges, self._grid.missing_code)] = True

    def findings(self) -> list[Finding]:
        n_text = self._numbers.n_text
        n_present = self.n_rows - self._absent
        found = []
        if n_text:
            text = f"{n_text:,} of {self.n_rows:,} rows hold text that is no number, and such rows"
            found.append(self.found("no number", n_text, f"{text} are refused", True))
        for word, n_rows, bound in (
            ("below the lower", self._below, self._lower),
            ("above the upper", self._above, self._upper),
        ):
            if n_rows:
                text = f"{_share(n_rows, n_present)} of {n_present:,} values lie {word} bound"
                found.append(self.found("clipped", n_rows, f"{text} {bound:g}"))
        found += self.missing(self._absent - n_text, self._allowed)
        if n_present > 1 and self._least == self._most:
            found.append(self.constant(n_present))
        elif n_present > 1 and self._grid is not None and self._cells.sum() == 1:
            text = f"all {n_present:,} values lie in one of {self._grid.n_cells} cells, so no tree"
            advice = "can tell them apart; give bounds near them"
            found.append(self.found("one cell", n_present, f"{text} {advice}"))
        return found


class _WeightTally(_NumberTally):
    """Counts of weights that are clamped, and of rows without one."""

    def __init__(self, weight: Weight, source: str, written: CsvFormat) -> None:
        super().__init__(weight.column, 0.0, weight.at_most, source, written, missing=False)

    def constant(self, n_present: int) -> Finding:
        text = f"all {n_present:,} weights are the same; without [weight] there is less noise"
        return self.found("constant", n_present, text)


class _ListTally(_Tally):
    """Counts of a column with a list of values."""

    def __init__(
        self, name: str, listed: Sequence[Value], source: str, written: CsvFormat,
        missing: bool, refused: bool, noun: str,
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._listed, self._allowed, self._refused, self._noun = listed, missing, refused, noun
        self._place, self._written = f"{source}: column {name!r}", written
        self._counts = np.zeros(len(listed) + 2, np.int64)  # missing, unlisted, then the list

    def read(self, values: Any) -> None:
        positions, places = positions_in(values, self._listed, self._place, self._written)
        of_rows = places.take(positions) + 2  # MISSING is -2, UNKNOWN is -1
        self.n_rows += of_rows.size
        self._counts += np.bincount(of_rows, minlength=self._counts.size)

    def findings(self) -> list[Finding]:
        n_missing, n_unlisted, *n_listed = self._counts.tolist()
        n_present = self.n_rows - n_missing
        found = []
        if n_unlisted:
            text = f"{_share(n_unlisted, n_present)} of {n_present:,} values are not among its"
            end = ", and such rows are refused" if self._refused else ""
            text = f"{text} {len(self._listed)} {self._noun}{end}"
            found.append(self.found("unlisted", n_unlisted, text, self._refused))
        found += self.missing(n_missing, self._allowed)
        if n_present > 1 and not n_unlisted and max(n_listed) == n_present:
            found.append(self.constant(n_present))
        return found


class _PersonTally(_Tally):
    """Rows without an id, and rows beyond those of a person that count."""

    def __init__(self, name: str, at_most: int, source: str) -> None:
        super().__init__(name)
        self._at_most, self._persons = at_most, Persons(name, source)
        self._hashes: list[NDArray[np.uint64]] = []

    def read(self, values: Any) -> None:
        self._hashes.append(self._persons.read(values))
        self.n_rows += self._hashes[-1].size

    def findings(self) -> list[Finding]:
        n_missing = self._persons.n_absent
        hashes = np.concatenate(self._hashes) if self._hashes else np.empty(0, np.uint64)
        _, n_each = np.unique(hashes, return_counts=True)
        beyond = int(np.sum(np.maximum(n_each - self._at_most, 0))) - max(
            n_missing - self._at_most, 0
        )
        found = self.missing(n_missing, False)
        if beyond:
            text = f"{_share(beyond, self.n_rows)} of {self.n_rows:,} rows are beyond the"
            text = f"{text} {self._at_most} of a person that count, and are not used"
            found.append(self.found("beyond at_most", beyond, text))
        return found


def _column_tally(grid: ColumnGrid, stream: Stream) -> _Tally:
    column, place = grid.column, (stream.source, stream.csv)
    if isinstance(column, Numeric):
        bounds = (column.lower, column.upper)
        return _NumberTally(column.name, *bounds, *place, column.missing, grid)
    refused = column.other == "error"
    return _ListTally(column.name, column.categories, *place, column.missing, refused, "categories")


class _TimeTally(_NumberTally):
    """Counts of times that are refused, and of those beyond the horizon, which are censored."""

    def __init__(self, label: Label, source: str, written: CsvFormat) -> None:
        super().__init__(label.name, 0.0, float(label.cuts[-1]), source, written, missing=False)

    def findings(self) -> list[Finding]:
        found = []
        for finding in super().findings():
            text = finding.text
            if finding.what == "clipped" and "below" in text:
                text, refused = f"{text}, and negative times are refused", True
                found.append(Finding(self.name, "negative", finding.n_rows, text, refused))
            elif finding.what == "clipped":
                text = f"{text}, the horizon, and count as censored there"
                found.append(Finding(self.name, "beyond the horizon", finding.n_rows, text))
            else:
                found.append(finding)
        return found


class _CountTally(_NumberTally):
    """Counts that are refused, and those above the cap, which count as it."""

    def __init__(self, label: Label, source: str, written: CsvFormat) -> None:
        assert label.upper is not None
        super().__init__(label.name, 0.0, label.upper, source, written, missing=False)
        self._broken = 0

    def read(self, values: Any) -> None:
        super().read(values)
        numbers = np.asarray(self._numbers.read(values), np.float64)
        self._broken += int(np.sum(np.isfinite(numbers) & (numbers != np.floor(numbers))))

    def findings(self) -> list[Finding]:
        found = [_refused_below(finding, "negative counts") for finding in super().findings()]
        if self._broken:
            text = f"{self._broken:,} of {self.n_rows:,} values are no whole numbers, and such rows"
            found.append(self.found("no count", self._broken, f"{text} are refused", True))
        return found


class _ExposureTally(_NumberTally):
    """Exposures that are refused, and those above the cap, which count as it."""

    def __init__(self, label: Label, source: str, written: CsvFormat) -> None:
        least, most = float(np.nextafter(0.0, 1.0)), label.max_exposure or 1.0
        super().__init__(label.exposure or "", least, most, source, written, missing=False)

    def findings(self) -> list[Finding]:
        return [_refused_below(finding, "exposures of 0") for finding in super().findings()]


def _refused_below(finding: Finding, what: str) -> Finding:
    """What lies below the lower bound is refused here, not clipped."""
    if finding.what != "clipped" or "below" not in finding.text:
        return finding
    text = (
        f"{finding.column}: {finding.n_rows:,} values lie below the least, and {what} are refused"
    )
    return Finding(finding.column, "below", finding.n_rows, text, True)


def _label_tallies(label: Label, source: str, written: CsvFormat) -> dict[str, _Tally]:
    """By column of the label, in the order in which they are read."""
    place = (source, written)
    if label.event is not None:
        codes = _ListTally(
            label.event, label.event_codes, *place, False, True, "event codes (censored, event)"
        )
        return {label.name: _TimeTally(label, *place), label.event: codes}
    if label.task == "counts":
        tallies = (_CountTally(label, *place), _ExposureTally(label, *place))
        return dict(zip(label.columns, tallies, strict=False))
    if label.lower is not None and label.upper is not None:
        return {label.name: _NumberTally(label.name, label.lower, label.upper, *place, False)}
    classes = _ListTally(label.name, label.classes, *place, False, True, "classes")
    return {label.name: classes}


def _share(part: int, whole: int) -> str:
    """A part in per cent: 0 and 100 are none and all, and nothing else.

    >>> _share(3, 3), _share(5999, 6000), _share(1, 6000), _share(1, 8)
    ('100 %', 'more than 99 %', 'less than 1 %', '12 %')
    """
    share = 100 * part / whole
    if 0 < share < 1:
        return "less than 1 %"
    return "more than 99 %" if 99 < share < 100 else f"{share:.0f} %"
