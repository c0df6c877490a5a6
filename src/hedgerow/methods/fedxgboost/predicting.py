"""Joint prediction: the active party walks all rows down all trees, asking owners level by level.

At each depth it asks every passive party once, for all rows and trees together: which way go these
rows at these splits? The number of messages depends on the depth of the trees, not on rows
or trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError, TableError
from hedgerow.methods.fedxgboost.aligning import ActiveRows, PassiveRows
from hedgerow.methods.fedxgboost.asking import DONE, Asking, PeerSteps, answering
from hedgerow.methods.fedxgboost.bins import Split, some_columns
from hedgerow.methods.fedxgboost.model import Part, part_name, predictions_name
from hedgerow.methods.fedxgboost.places import Paths
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.exact import Ints
from hedgerow.model.losses import loss_for
from hedgerow.model.routing import routes_of
from hedgerow.packing import pack
from hedgerow.protocol.peer_messages import PeerMessage
from hedgerow.protocol.roles import Agreement, Step, Store

Bools = NDArray[np.bool_]


class PredictionRole:
    """One party's side of a joint prediction. The active party has the result, nobody else.

    The agreement's settings name the `model` (the run that made it) beside `owners`, `active` and
    `ids` of the rows.
    """

    def __init__(
        self, name: str, rows: Rows, schema: Schema, agreement: Agreement, store: Store
    ) -> None:
        values = dict(agreement.settings)
        model = str(values.pop("model", ""))
        self.settings = VerticalSettings.from_dict(values)
        self._name, self._rows, self._schema, self._store = name, rows, schema, store
        self.part = _part_of(store, model, name, schema)
        self._run = agreement.run
        self.asking = Asking(self.settings.passive)
        self.scores: NDArray[np.float64] | None = None
        self.index: Ints | None = None  # the active party's rows that were predicted, in order
        is_active = name == self.settings.active
        if is_active != self.part.is_active:
            raise TableError(f"the active party of this model is another one than {name!r}")
        self._steps = self._active() if is_active else self._passive()
        self._begun = False

    def step(self, messages: Mapping[str, bytes]) -> Step:
        if not self._begun:
            self._begun = True
            return next(self._steps)
        return self._steps.send(messages)

    def _active(self) -> PeerSteps[None]:
        asking, parties = self.asking, self.part.parties
        self.index = yield from ActiveRows(self._rows, self.settings, asking).aligned()
        rows = self._rows.take(self.index)
        trees, n = self.part.trees, rows.n_rows
        at = np.zeros((len(trees), n), np.int64)  # the node of every row in every tree
        own = _Walker(rows, self._schema, self.part.splits)
        while True:
            wanted = {name: _wanted(trees, at, place) for place, name in enumerate(parties)}
            if not any(wanted.values()):
                break
            messages = {name: _question(wanted[name], n) for name in asking.passive if wanted[name]}
            answers = (yield from asking.ask(messages, "sides")) if messages else {}
            for place, name in enumerate(parties):
                if not wanted[name]:
                    continue
                numbers = sorted(wanted[name])
                sides = (
                    own.sides(numbers)
                    if place == 0
                    else _read_sides(answers[name], [wanted[name][k] for k in numbers], n)
                )
                _walk(trees, at, place, numbers, sides)
        self.scores = np.zeros((n, loss_for(self._schema.label).n_outputs))
        for t, tree in enumerate(trees):
            self.scores += tree.values[tree.number[at[t]]]
        yield from asking.tell_all(pack({"kind": "end"}))
        self._keep()
        yield Step(report=pack({"rows": n}), done=True)
        while True:
            yield Step(done=True)

    def _keep(self) -> None:
        """The scores in the active party's store, with the ids they belong to."""
        assert self.scores is not None
        assert self.index is not None
        ids = None if self._rows.ids is None else [self._rows.ids[i] for i in self.index]
        values = {"ids": ids, "schema": self._schema.to_dict()}
        arrays = {"scores": self.scores, "index": self.index}
        self._store.put(predictions_name(self._run), pack(values, arrays))

    def _passive(self) -> PeerSteps[None]:
        aligning = PassiveRows(self._rows, self.settings)
        walker: _Walker | None = None

        def answer(kind: str, data: bytes) -> tuple[bytes, bytes]:
            nonlocal walker
            message = PeerMessage(self.settings.active, kind, data)
            if kind.startswith("ids"):
                return aligning.answer(kind, message), b""
            if kind == "end":
                return DONE, b""
            if kind != "sides":
                raise message.wrong("it is no part of a prediction")
            if walker is None:
                rows = self._rows.take(aligning.index(message))
                walker = _Walker(rows, self._schema, self.part.splits)
            return walker.answer(message), b""

        yield from answering(self.settings.active, answer)


class _Walker:
    """Which way rows go at a party's own splits."""

    def __init__(self, rows: Rows, schema: Schema, splits: Sequence[Split]) -> None:
        grid = base_grid(schema)
        held = rows.columns or tuple(range(len(schema.columns)))
        missing = sorted({split.column for split in splits} - set(held))
        if missing:
            raise TableError(
                f"the table has no column {schema.names[missing[0]]!r}, which this party's part "
                "of the model asks about. Nothing was sent."
            )
        self._grid, self._splits = grid, splits
        self._codes = some_columns(rows.codes, [grid[j] for j in held], range(len(held)))
        self._place = {j: k for k, j in enumerate(held)}
        self._held = [grid[j] for j in held]
        self._paths = Paths(splits, rows.n_rows)

    def sides(self, numbers: Sequence[int]) -> list[Bools]:
        """Of every row, for each of these splits: whether it goes right."""
        found = []
        for number in numbers:
            split = self._splits[number]
            structure = split.structure()
            structure.feature[0] = self._place[split.column]
            score = np.zeros((self._codes.n_rows, 1))
            own = np.array([[0.0], [1.0]], np.float32)
            routes_of([structure], self._held).add_scores(self._codes, score, own)
            found.append(score[:, 0] > 0)
        return found

    def answer(self, message: PeerMessage) -> bytes:
        """Bits of the rows that were asked about, split by split."""
        numbers = message.array("numbers", np.int64, (-1,)).tolist()
        n = self._codes.n_rows
        rows = message.array("rows", np.uint8, (len(numbers), -(-n // 8)))
        if numbers != sorted(set(numbers)) or any(not 0 <= k < len(self._splits) for k in numbers):
            raise message.wrong("it asks about splits that this party does not have")
        asked = np.unpackbits(rows, axis=1, count=n, bitorder="little").astype(np.bool_)
        bits = []
        for number, side, chosen in zip(numbers, self.sides(numbers), asked, strict=True):
            self._paths.check(number, chosen, message)
            self._paths.went(number, chosen, side)
            bits.append(side[chosen])
        packed = np.packbits(np.concatenate([np.zeros(0, np.bool_), *bits]), bitorder="little")
        return pack({"kind": "sides"}, {"bits": packed})


def _wanted(trees: Sequence[object], at: Ints, place: int) -> dict[int, Bools]:
    """By number of a party's split: the rows that are at it."""
    found: dict[int, Bools] = {}
    for t, tree in enumerate(trees):
        for node in np.unique(at[t]).tolist():
            if tree.owner[node] == place:  # type: ignore[attr-defined]
                found[int(tree.number[node])] = at[t] == node  # type: ignore[attr-defined]
    return found


def _question(wanted: Mapping[int, Bools], n_rows: int) -> bytes:
    numbers = sorted(wanted)
    rows = np.stack([np.packbits(wanted[k], bitorder="little") for k in numbers])
    return pack({"kind": "sides"}, {"numbers": np.array(numbers, np.int64), "rows": rows})


def _read_sides(message: PeerMessage, wanted: Sequence[Bools], n_rows: int) -> list[Bools]:
    counts = [int(rows.sum()) for rows in wanted]
    bits = message.array("bits", np.uint8, (-(-sum(counts) // 8),))
    flat = np.unpackbits(bits, bitorder="little")[: sum(counts)].astype(np.bool_)
    found = []
    for rows, part in zip(wanted, np.split(flat, np.cumsum(counts)[:-1]), strict=True):
        side = np.zeros(n_rows, np.bool_)
        side[rows] = part
        found.append(side)
    return found


def _walk(
    trees: Sequence[object], at: Ints, place: int, numbers: Sequence[int], sides: Sequence[Bools]
) -> None:
    """Move the rows that are at a party's splits one level down."""
    where = dict(zip(numbers, sides, strict=True))
    for t, tree in enumerate(trees):
        for node in np.unique(at[t]).tolist():
            number = int(tree.number[node])  # type: ignore[attr-defined]
            if tree.owner[node] != place or number not in where:  # type: ignore[attr-defined]
                continue
            rows, right = at[t] == node, where[number]
            at[t][rows & right] = tree.right[node]  # type: ignore[attr-defined]
            at[t][rows & ~right] = tree.left[node]  # type: ignore[attr-defined]


def _part_of(store: Store, model: str, name: str, schema: Schema) -> Part:
    data = store.get(part_name(model))
    if data is None:
        raise TableError(
            f"{name} has no part of the model {model!r}. Nothing was sent. Name the run that made "
            "the model, as `hedgerow vertical train` printed it."
        )
    part = Part.from_bytes(data)
    if part.party != name or part.schema.hash != schema.hash:
        raise FormatError(f"the part of {model!r} belongs to another party or schema than {name}'s")
    return part
