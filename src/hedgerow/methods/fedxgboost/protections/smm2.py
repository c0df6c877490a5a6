"""`smm-2` (algorithms 3 to 5): passive parties send a null space, the active party answers with V.

A passive party hides its split matrix among random columns and sends r vectors of the null space of
all of them; the active party answers with its numbers less the part along a secret r' of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from hedgerow.errors import FormatError
from hedgerow.kernels.threads import over_items
from hedgerow.methods.fedxgboost.asking import Asking, PeerSteps
from hedgerow.methods.fedxgboost.bins import Bools
from hedgerow.methods.fedxgboost.levels import Level, search
from hedgerow.methods.fedxgboost.protections import smm
from hedgerow.methods.fedxgboost.protections.base import (
    DONE,
    ExactNumbers,
    Floats,
    Passive,
    ScoredThere,
)
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.exact import BITS, Ints
from hedgerow.model.losses import Loss
from hedgerow.packing import pack
from hedgerow.privacy.noise import secret_randomness
from hedgerow.protocol.peer_messages import PeerMessage

_MOST_CHUNKS = 1 << 20


class Smm2Active(ScoredThere, ExactNumbers):
    """Answers null-space vectors with its numbers, less what lies along some of them."""

    def __init__(
        self, asking: Asking, settings: VerticalSettings, loss: Loss, target: Floats
    ) -> None:
        ScoredThere.__init__(self, asking)
        ExactNumbers.__init__(self, settings, loss, target)

    def begin(self, numbers: Ints) -> PeerSteps[None]:
        yield from self._asking.tell_all(pack({"kind": "tree"}))

    def offers(self, level: Level, numbers: Ints, totals: Ints) -> PeerSteps[dict[str, Floats]]:
        messages = dict.fromkeys(self._asking.passive, level.message())
        kernels = yield from self._asking.ask(messages, "kernel")
        sizes = level.sizes
        while True:
            messages = {
                name: self._answer(kernel, level, numbers, sizes)
                for name, kernel in kernels.items()
                if kernel.whole("blocks", 0, _MOST_CHUNKS)
            }
            if not messages:
                break
            kernels = yield from self._asking.ask(messages, "kernel")
        ending = pack({"kind": "totals"}, {"totals": totals})
        answers = yield from self._asking.ask(dict.fromkeys(self._asking.passive, ending), "scores")
        return self.read_scores(answers, level.n_nodes)

    def _answer(self, kernel: PeerMessage, level: Level, numbers: Ints, sizes: Ints) -> bytes:
        """W of every block that a passive party has sent vectors for."""
        work: list[tuple[Ints, Floats]] = []
        for i in range(kernel.whole("blocks", 1, _MOST_CHUNKS)):
            rows = kernel.array(f"rows{i}", np.int64, (-1,))
            u = kernel.numbers(f"u{i}", (len(rows), -1))
            inside = len(rows) and int(rows.min()) >= 0 and int(rows.max()) < len(level.node)
            if not inside or len(np.unique(rows)) < len(rows):
                raise kernel.wrong("it names rows that there are not")
            node = int(level.node[rows[0]])
            if node >= level.n_nodes or bool((level.node[rows] != node).any()):
                raise kernel.wrong("it mixes rows of several nodes")
            whole = len(rows) >= min(self._settings.block_rows, int(sizes[node])) // 2
            if not whole or not 1 <= u.shape[1] < len(rows):
                raise kernel.wrong("its null-space vectors are not those of a block")
            work.append((rows, u))

        def answered(one: tuple[Ints, Floats]) -> Floats:
            rows, u = one
            if not smm.check_vectors(u):
                raise kernel.wrong("its null-space vectors are not orthonormal")
            z = smm.some_vectors(u, self._settings.kernel_share, refuse_empty=True)
            return smm.hidden(np.asarray(numbers[rows] * 2.0**-BITS, np.float64), z)

        made = smm.each(answered, work)
        return pack({"kind": "answer"}, {f"w{i}": w for i, w in enumerate(made)})


@dataclass(frozen=True, eq=False)
class _Group:
    """Candidates of one block that are asked about together."""

    node: int
    block: int  # the first of its rows, by which it is known
    members: Ints  # numbers of candidates; one beyond the last stands for all rows
    matrix: Floats  # (row, candidate): theirs, or their complements
    single: Bools  # (candidate,): where it is the complement, of a candidate with one row


class Smm2Passive(Passive):
    """Sends null-space vectors of its hidden matrix, and scores what the answers give."""

    def answer(self, kind: str, message: PeerMessage) -> bytes:
        if kind == "tree":
            self.begin_tree(message)
            return DONE
        if kind == "level":
            return self._begin(self.take_level(message))
        if self.level is None:
            raise self.unknown(kind)
        if kind == "answer":
            return self._take(message)
        if kind == "totals":
            return self._score(message)
        raise self.unknown(kind)

    def _begin(self, level: Level) -> bytes:
        self._candidates = smm.Candidates(self.bins.starts, self.bins.categorical)
        count, s = self._candidates.count, self.settings
        wide = max(s.block_rows, 2 * (count + s.decoys + s.gaussians))
        self._waiting = list(smm.chunks(smm.blocks_of(level, wide)))
        self._sums = np.zeros((level.n_nodes, count, 2 * self.n_outputs), np.int64)
        return self._next()

    def _next(self) -> bytes:
        """Null-space vectors of the next blocks, candidates in as many groups as rows allow."""
        self._asked: list[_Group] = []
        arrays: dict[str, np.ndarray] = {}
        blocks = self._waiting.pop(0) if self._waiting else []
        with threadpool_limits(1, "blas"):
            found = over_items(self._groups, blocks)
        for block, groups in zip(blocks, found, strict=True):
            for group, vectors in groups:
                i = len(self._asked)
                arrays[f"rows{i}"], arrays[f"u{i}"] = block.rows, vectors
                self._asked.append(group)
        return pack({"kind": "kernel", "blocks": len(self._asked)}, arrays)

    def _groups(self, block: smm.Block) -> list[tuple[_Group, Floats]]:
        """Candidates of a block in groups whose null space leaves no row of ZZ' empty.

        Neighbouring cuts come into different groups: their difference may be a single row. A
        candidate of a single row is asked by its complement, beside the sum of all rows.
        """
        matrix, n = self._candidates.matrix(self.bins, block.rows), len(block.rows)
        single = matrix.sum(axis=0) == 1
        matrix[:, single] = 1 - matrix[:, single]
        matrix = np.concatenate([matrix, np.ones((n, 1))], axis=1)
        single = np.append(single, False)
        every = [np.arange(len(single) - 1), np.array([len(single) - 1])]
        found, waiting = [], every if single.any() else every[:1]
        most = n // 2 - min(self.settings.decoys, n // 4) - max(1, n // 8)
        while waiting:
            members = waiting.pop()
            basis = self._hidden(matrix[:, members]) if len(members) <= max(1, most) else None
            if basis is not None and not smm.shows_a_row(basis):
                vectors = self._vectors(basis)
                own = (matrix[:, members], single[members])
                group = _Group(block.node, int(block.rows[0]), members, *own)
                found.append((group, vectors))
            elif len(members) > 1:
                waiting += [members[0::2], members[1::2]]
            else:
                raise FormatError(
                    f"a block of {n} rows cannot be hidden by smm-2. Nothing more was sent. Raise "
                    "min_rows, or choose another protection."
                )
        return found

    def _hidden(self, matrix: Floats) -> Floats:
        """Algorithm 5: what random bits and normal values span together with the true columns."""
        n = len(matrix)
        decoys, drawn = min(self.settings.decoys, n // 4), min(self.settings.gaussians, n // 8)
        bits = secret_randomness.bits((n, decoys)).astype(np.float64)
        normals = secret_randomness.normals((n, max(1, drawn)))
        return smm.directions(np.concatenate([matrix, bits, normals], axis=1))

    def _vectors(self, basis: Floats) -> Floats:
        """Vectors at right angles to all of that."""
        left = basis.shape[0] - basis.shape[1]
        return smm.outside(basis, max(1, int(self.settings.kernel_share * left)))

    def _take(self, message: PeerMessage) -> bytes:
        read = []
        for i, group in enumerate(self._asked):
            w = message.numbers(f"w{i}", (len(group.matrix), 2 * self.n_outputs))
            read.append(smm.to_grid(group.matrix.T @ w))
        count = self._candidates.count
        whole = {  # by block: the sums of all its rows, where a complement needs them
            group.block: sums[0]
            for group, sums in zip(self._asked, read, strict=True)
            if group.members[0] == count
        }
        for group, sums in zip(self._asked, read, strict=True):
            if group.members[0] == count:
                continue
            single = group.single
            sums[single] = whole[group.block] - sums[single] if single.any() else sums[single]
            self._sums[group.node, group.members] += sums
        return self._next()

    def _score(self, message: PeerMessage) -> bytes:
        assert self.level is not None
        n, s = self.level.n_nodes, self.settings
        if self._waiting or self._asked:
            raise message.wrong("it comes before all blocks were answered")
        totals = message.array("totals", np.int64, (n, 2 * self.n_outputs))
        bins = np.stack([self._candidates.bins(self._sums[j], totals[j]) for j in range(n)])
        arrays = (bins, self.bins.starts, self.bins.categorical, totals)
        return self.scored(search(*arrays, s.reg_lambda, s.min_child_weight))
