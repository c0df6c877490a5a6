"""`smm-1` (algorithms 1 and 2): passive parties answer with M'(I - ZZ'), Z from the active party.

The active party sends r vectors that are orthogonal to its numbers; a passive party answers with
its split matrix less the part along a secret r' of them, from which the products follow exactly.
"""

from __future__ import annotations

import numpy as np

from hedgerow.methods.fedxgboost.asking import Asking, PeerSteps
from hedgerow.methods.fedxgboost.levels import Level
from hedgerow.methods.fedxgboost.protections import smm
from hedgerow.methods.fedxgboost.protections.base import (
    DONE,
    ExactNumbers,
    Floats,
    PassiveUnscored,
    ScoredHere,
)
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.exact import BITS, Ints
from hedgerow.model.losses import Loss
from hedgerow.packing import pack
from hedgerow.protocol.peer_messages import PeerMessage


class Smm1Active(ScoredHere, ExactNumbers):
    """Sends null-space vectors block by block, and multiplies the answers with its numbers."""

    def __init__(
        self, asking: Asking, settings: VerticalSettings, loss: Loss, target: Floats
    ) -> None:
        ScoredHere.__init__(self, asking, settings)
        ExactNumbers.__init__(self, settings, loss, target)

    def begin(self, numbers: Ints) -> PeerSteps[None]:
        yield from self._asking.tell_all(pack({"kind": "tree"}))

    def offers(self, level: Level, numbers: Ints, totals: Ints) -> PeerSteps[dict[str, Floats]]:
        yield from self._asking.tell_all(level.message())
        candidates = {
            name: smm.Candidates(shape.starts, shape.categorical)
            for name, shape in self.shapes.items()
        }
        width = numbers.shape[1]
        sums = {n: np.zeros((level.n_nodes, c.count, width)) for n, c in candidates.items()}
        first = 0
        for chunk in smm.chunks(smm.blocks_of(level, self._settings.block_rows)):
            held = [np.asarray(numbers[block.rows] * 2.0**-BITS, np.float64) for block in chunk]
            vectors = smm.each(lambda v: smm.null_vectors(v, self._count(len(v), width)), held)
            arrays = {f"u{i}": u for i, u in enumerate(vectors)}
            message = pack({"kind": "kernel", "first": first, "blocks": len(chunk)}, arrays)
            first += len(chunk)
            messages = dict.fromkeys(self._asking.passive, message)
            answers = yield from self._asking.ask(messages, "answer")
            for name, answer in answers.items():
                for i, (block, v) in enumerate(zip(chunk, held, strict=True)):
                    w = answer.numbers(f"w{i}", (candidates[name].count, len(v)))
                    sums[name][block.node] += smm.to_grid(w @ v)
        found = {}
        for name, one in candidates.items():
            exact = sums[name].astype(np.int64)  # whole numbers below 2**53
            bins = [one.bins(exact[node], totals[node]) for node in range(level.n_nodes)]
            found[name] = self.score(name, np.stack(bins), totals)
        return found

    def _count(self, n_rows: int, width: int) -> int:
        """r: a share of the rows, and never all that is left beside the numbers themselves."""
        return max(1, min(int(self._settings.kernel_share * n_rows), n_rows - width))


class Smm1Passive(PassiveUnscored):
    """Answers with its split matrix, made secret by some of the vectors."""

    def answer(self, kind: str, message: PeerMessage) -> bytes:
        if kind == "tree":
            self.begin_tree(message)
            return DONE
        if kind == "level":
            self.take_level(message)
            self._blocks = smm.blocks_of(self.level, self.settings.block_rows)  # type: ignore[arg-type]
            return DONE
        if kind != "kernel" or self.level is None:
            raise self.unknown(kind)
        return self._answer(message)

    def _answer(self, message: PeerMessage) -> bytes:
        count = message.whole("blocks", 1, len(self._blocks))
        first = message.whole("first", 0, len(self._blocks) - count)
        candidates = smm.Candidates(self.bins.starts, self.bins.categorical)
        arrays, work = {}, []
        for i, block in enumerate(self._blocks[first : first + count]):
            u = message.numbers(f"u{i}", (len(block.rows), -1))
            if not 1 <= u.shape[1] < len(block.rows):
                raise message.wrong(f"it has {u.shape[1]} null-space vectors for a block")
            due = int(self.settings.kernel_share * len(block.rows))
            if u.shape[1] < min(due, len(block.rows) - 2 * self.n_outputs):
                raise message.wrong(f"it has {u.shape[1]} null-space vectors; {due} were agreed")
            work.append((block, u))

        def answered(one: tuple[smm.Block, Floats]) -> Floats:
            block, u = one
            if not smm.check_vectors(u):
                raise message.wrong("its null-space vectors are not orthonormal")
            z = smm.some_vectors(u, self.settings.kernel_share, refuse_empty=False)
            hidden = smm.hidden(candidates.matrix(self.bins, block.rows), z)
            return np.ascontiguousarray(hidden.T)

        for i, w in enumerate(smm.each(answered, work)):
            arrays[f"w{i}"] = w
        return pack({"kind": "answer"}, arrays)
