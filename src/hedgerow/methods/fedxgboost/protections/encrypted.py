"""`paillier`: gradients travel encrypted, and passive parties add them up without reading them.

The active party decrypts the sums of every bin of every column, and scores. It is the comparison
that the paper makes, and what the measurements support where labels must not be guessed.
"""

from __future__ import annotations

import numpy as np

from hedgerow.methods.fedxgboost import paillier
from hedgerow.methods.fedxgboost.asking import Asking, PeerSteps
from hedgerow.methods.fedxgboost.bins import Bins
from hedgerow.methods.fedxgboost.levels import Level, counted
from hedgerow.methods.fedxgboost.processes import Processes
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

LARGEST = 1 << BITS  # of a gradient or Hessian on the grid


class PaillierActive(ScoredHere, ExactNumbers):
    """Encrypts once a tree, decrypts once a level."""

    def __init__(
        self, asking: Asking, settings: VerticalSettings, loss: Loss, target: Floats
    ) -> None:
        ScoredHere.__init__(self, asking, settings)
        ExactNumbers.__init__(self, settings, loss, target)
        self._key = paillier.make_key(settings.key_bits)
        self._packing = packing_for(settings, loss.n_outputs, len(target), self._key.public.bits)
        self._processes = Processes()

    def close(self) -> None:
        self._processes.close()

    def begin(self, numbers: Ints) -> PeerSteps[None]:
        made = paillier.encrypt(self._key, numbers, self._packing, self._processes)
        public = np.frombuffer(self._key.public.to_bytes(), np.uint8)
        yield from self._asking.tell_all(pack({"kind": "cipher"}, {"made": made, "key": public}))

    def offers(self, level: Level, numbers: Ints, totals: Ints) -> PeerSteps[dict[str, Floats]]:
        messages = dict.fromkeys(self._asking.passive, level.message())
        answers = yield from self._asking.ask(messages, "sums")
        return {name: self._scored(name, level, totals, answers[name]) for name in answers}

    def _scored(self, name: str, level: Level, totals: Ints, answer: PeerMessage) -> Floats:
        n, n_bins = level.n_nodes, int(self.shapes[name].starts[-1])
        due = -(-n * n_bins * self._packing.n_parts // self._packing.together)
        closed = answer.array("sums", np.uint8, (due, self._key.public.width))
        opened = paillier.open_sums(self._key, closed, self._packing, n * n_bins, self._processes)
        histograms = opened.reshape(n, n_bins, totals.shape[1])
        sums = np.add.reduceat(histograms, self.shapes[name].starts[:-1], axis=1)
        if bool((sums != totals[:, None]).any()):
            # Whether false sums add up may depend on labels (a row in the place of another adds up
            # if both have the same one): the run goes on, and nobody else is told.
            self.doubted.add(name)
        return self.score(name, np.ascontiguousarray(histograms), totals)


class PaillierPassive(PassiveUnscored):
    """Multiplies ciphertexts by bin; re-randomises what it sends back."""

    def __init__(self, bins: Bins, settings: VerticalSettings, n_outputs: int) -> None:
        super().__init__(bins, settings, n_outputs)
        self._key: paillier.PublicKey | None = None
        self._processes = Processes()
        columns = [bins.codes.column(j).astype(np.int64) for j in range(bins.codes.n_columns)]
        self._codes = np.stack(columns, axis=1)  # (row, column)

    def close(self) -> None:
        self._processes.close()

    def answer(self, kind: str, message: PeerMessage) -> bytes:
        if kind == "cipher":
            return self._take(message)
        if kind != "level" or self._key is None:
            raise self.unknown(kind)
        level = self.take_level(message)
        sums = self._sums(level, self._key)
        self._last = sums
        flat = sums.reshape(-1, *sums.shape[2:])
        closed = paillier.close(self._key, flat, self._packing, self._processes)
        return pack({"kind": "sums"}, {"sums": closed.reshape(-1, self._key.width)})

    def _take(self, message: PeerMessage) -> bytes:
        self.begin_tree(message)
        raw = message.array("key", np.uint8, (-1,)).tobytes()
        self._key = paillier.PublicKey.from_bytes(raw, min(self.settings.key_bits, 1024))
        if self._key.bits < self.settings.key_bits - 1:
            raise message.wrong(
                f"its key has {self._key.bits} bits; {self.settings.key_bits} are due"
            )
        self._packing = packing_for(self.settings, self.n_outputs, self.n_rows, self._key.bits)
        shape = (self.n_rows, self._packing.n_parts, self._key.width)
        self._ciphertexts = message.array("made", np.uint8, shape)
        return DONE

    def _sums(self, level: Level, key: paillier.PublicKey) -> paillier.Bytes:
        """Ciphertexts (node, bin, part, byte); the larger of two twins by subtraction."""
        n, n_bins = level.n_nodes, self.bins.n_bins
        slot, twin = counted(level)
        direct = np.flatnonzero(slot >= 0)
        into = np.full(n + 1, -1, np.int64)
        into[direct] = np.arange(len(direct))
        sizes = np.diff(self.bins.starts).tolist()
        cells, per_node = paillier.cells_of(into[level.node], self._codes, sizes)
        arrays = (key, self._ciphertexts, cells, per_node * len(direct), self._processes)
        shape = (n, n_bins, self._packing.n_parts, key.width)
        found = np.empty(shape, np.uint8)
        found[direct] = paillier.add_up(*arrays).reshape(len(direct), *shape[1:])
        if rest := np.flatnonzero(slot < 0).tolist():
            whole = np.concatenate([self._last[level.parent[node]] for node in rest])
            part = np.concatenate([found[twin[node]] for node in rest])
            less = paillier.subtract(key, whole, part, self._processes)
            found[rest] = less.reshape(len(rest), *shape[1:])
        return found


def packing_for(
    settings: VerticalSettings, n_outputs: int, n_rows: int, key_bits: int
) -> paillier.Packing:
    """Known to both sides without a word."""
    return paillier.Packing.for_rows(2 * n_outputs, LARGEST, n_rows, key_bits)
