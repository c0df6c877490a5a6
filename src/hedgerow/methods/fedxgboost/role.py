"""A vertical run as the roles of its parties: align rows, bin columns, grow, keep the parts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError, TableError
from hedgerow.methods.fedxgboost.aligning import ActiveRows, PassiveRows
from hedgerow.methods.fedxgboost.asking import DONE, Asking, PeerSteps, answering
from hedgerow.methods.fedxgboost.bins import Bins, Split, binned, some_columns
from hedgerow.methods.fedxgboost.boost import Booster
from hedgerow.methods.fedxgboost.model import Part, part_name
from hedgerow.methods.fedxgboost.protections import active_side, passive_side
from hedgerow.methods.fedxgboost.protections.base import PassiveUnscored, ScoredHere, Shape
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.methods.fedxgboost.statements import statement_for
from hedgerow.model.losses import loss_for
from hedgerow.packing import pack
from hedgerow.protocol.peer_messages import PeerMessage
from hedgerow.protocol.roles import Agreement, Step, Store

log = logging.getLogger(__name__)
BEGUN = "begun-"  # marks runs whose noise was drawn; it is not drawn twice


class VerticalRole:
    """One party's side of a run; the same steps in one process and over an engine."""

    def __init__(
        self, name: str, rows: Rows, schema: Schema, agreement: Agreement, store: Store
    ) -> None:
        self._name, self._rows, self._schema = name, rows, schema
        self.settings = VerticalSettings.from_dict(agreement.settings)
        self._agreement, self._store = agreement, store
        self._columns = self.settings.columns_of(name, schema)
        check_share(name, rows, schema, self.settings)
        self.part: Part | None = None
        self.asking = Asking(self.settings.passive)
        is_active = name == self.settings.active
        self._steps = self._active() if is_active else self._passive()
        self._begun = False

    def step(self, messages: Mapping[str, bytes]) -> Step:
        """Read what the others wrote in the last step, by party; write the next messages."""
        if not self._begun:
            self._begun = True
            if messages:
                raise FormatError("messages came before the first step. The run ends here.")
            return next(self._steps)
        return self._steps.send(messages)

    def _active(self) -> PeerSteps[None]:
        settings, loss = self.settings, loss_for(self._schema.label)
        if settings.protection == "ldp":
            self._begin_once()
        index = yield from ActiveRows(self._rows, settings, self.asking).aligned()
        rows = self._rows.take(index)
        bins = self._binned(rows)
        side = active_side(self.asking, settings, loss, rows.target)
        hello = pack({"kind": "begin"})
        ready = yield from self.asking.ask(dict.fromkeys(settings.passive, hello), "ready")
        if isinstance(side, ScoredHere):
            side.shapes = {name: self._shape(name, message) for name, message in ready.items()}
        booster = Booster(bins, settings, loss, side, self.asking)
        try:
            yield from booster.grow()
        finally:
            side.close()
        end = pack({"kind": "end"})
        yield from self.asking.ask(dict.fromkeys(settings.passive, end), "done")
        doubted = sorted(side.doubted) if isinstance(side, ScoredHere) else []
        part = self._kept(tuple(booster.splits), booster, doubted)
        report = (
            part.handed_over().to_bytes()
            if settings.merge
            else pack({"tree": settings.n_trees, "of": 0})
        )
        yield Step(report=report, done=True)
        while True:
            yield Step(done=True)

    def _shape(self, party: str, message: PeerMessage) -> Shape:
        grid = base_grid(self._schema)
        grids = [grid[j] for j in self.settings.columns_of(party, self._schema)]
        return Shape.read(message, grids, self.settings.max_bins)

    def _begin_once(self) -> None:
        """Noise of one run is drawn once: a second time the two would tell more than epsilon."""
        mark = BEGUN + self._agreement.run
        if self._store.get(mark) is not None:
            raise TableError(
                f"the run {self._agreement.run} was begun before, and noisy labels were sent. "
                "Nothing was sent now. Begin a new run; it costs its epsilon again."
            )
        self._store.put(mark, b"1")

    def _passive(self) -> PeerSteps[None]:
        settings, loss = self.settings, loss_for(self._schema.label)
        aligning = PassiveRows(self._rows, settings)
        held: list[Split] = []
        side = None

        def answer(kind: str, data: bytes) -> tuple[bytes, bytes]:
            nonlocal side
            message = PeerMessage(settings.active, kind, data)
            if kind.startswith("ids"):
                return aligning.answer(kind, message), b""
            if kind == "begin":
                if side is not None:
                    raise message.wrong("the run has begun before")
                side = passive_side(
                    self._binned(self._rows.take(aligning.index(message))), settings, loss.n_outputs
                )
                if isinstance(side, PassiveUnscored):
                    return side.shape_message(), b""
                return pack({"kind": "ready"}), b""
            if side is None:
                raise message.wrong("it comes before the run has begun")
            if kind == "end":
                side.close()
                part = self._kept(tuple(held))
                return DONE, part.to_bytes() if settings.merge else b""
            if kind == "split":
                nodes = message.array("nodes", np.int64, (-1,)).tolist()
                if not nodes or nodes != sorted(set(nodes)) or nodes[0] < 0:
                    raise message.wrong("it does not name nodes in order")
                splits, bits = side.chosen(nodes, message)
                held.extend(splits)
                arrays = {"bits": np.packbits(bits, bitorder="little")}
                return pack({"kind": "sides"}, arrays), b""
            return side.answer(kind, message), b""

        try:
            yield from answering(settings.active, answer)
        finally:
            if side is not None:
                side.close()

    def _binned(self, rows: Rows) -> Bins:
        grid = base_grid(self._schema)
        held = rows.columns or tuple(range(len(self._schema.columns)))
        places = [held.index(j) for j in self._columns]
        own = some_columns(rows.codes, [grid[j] for j in held], places)
        return binned(own, [grid[j] for j in self._columns], self._columns, self.settings.max_bins)

    def _kept(
        self, splits: tuple[Split, ...], booster: Booster | None = None, doubted: Sequence[str] = ()
    ) -> Part:
        """This party's part of the model, in its store before anyone calls the run done."""
        record: dict[str, Any] = {"method": "fedxgboost", **self.settings.to_dict()}
        if doubted:
            record["doubted"] = list(doubted)
            log.warning(
                "run %s: sums of %s do not add up to those of all rows, so its role is faulty "
                "or lies. Do not use the model. The others were not told.",
                self._agreement.run, " and ".join(doubted),
            )  # fmt: skip
        self.part = Part(
            self._agreement.run, self._name, self.settings.parties, self._schema, splits,
            statement_for(self._agreement, self.settings),
            tuple(booster.trees) if booster is not None else (), record,
        )  # fmt: skip
        self._store.put(part_name(self._agreement.run), self.part.to_bytes())
        return self.part


def check_share(name: str, rows: Rows, schema: Schema, settings: VerticalSettings) -> None:
    """Raise unless a party has what the agreement says it has."""
    if rows.schema not in ("", schema.hash):
        raise FormatError(
            f"the rows of {name} were read by another schema than the agreement's. Nothing was "
            "sent. Read them again by the schema that was agreed on."
        )
    held = rows.columns or tuple(range(len(schema.columns)))
    missing = [schema.names[j] for j in settings.columns_of(name, schema) if j not in held]
    if missing:
        raise TableError(
            f"the table of {name} has no column {missing[0]!r}, which the agreement says it holds. "
            "Nothing was sent. Correct owners, or start the party with another table."
        )
    if name == settings.active and len(rows.target) != rows.n_rows:
        raise TableError(
            f"{name} is the active party and its table has no labels. Nothing was sent."
        )
    if settings.ids == "psi" and rows.ids is None:
        raise TableError(
            f"the rows of {name} have no ids to compare. Nothing was sent. Name the id column, or "
            'choose ids = "agreed" if all parties have the same rows in the same order.'
        )
