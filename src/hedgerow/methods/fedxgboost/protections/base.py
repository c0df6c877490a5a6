"""What a protection of the split statistics has to do, on either side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid
from hedgerow.errors import FormatError
from hedgerow.methods.fedxgboost.asking import DONE, Asking, PeerSteps
from hedgerow.methods.fedxgboost.bins import Bins, Bools, Split
from hedgerow.methods.fedxgboost.levels import Found, Histograms, Level, check_level, search, sides
from hedgerow.methods.fedxgboost.places import Places
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.exact import Ints, gradients, leaf_values
from hedgerow.model.losses import Loss
from hedgerow.packing import pack
from hedgerow.protocol.peer_messages import PeerMessage

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shape:
    """What the active party knows of a passive party's bins where it does the scoring."""

    starts: Ints
    categorical: Bools

    @staticmethod
    def read(message: PeerMessage, grids: Sequence[ColumnGrid], max_bins: int) -> Shape:
        """Of the party that has the columns of these grids: public facts bound what it may say."""
        starts = message.array("starts", np.int64, (len(grids) + 1,))
        flags = message.array("categorical", np.uint8, (len(grids),)).astype(np.bool_)
        ordered = np.array([grid.ordered for grid in grids], np.bool_)
        cells = np.array([grid.n_cells for grid in grids], np.int64)
        most = 1 + np.where(ordered, np.minimum(cells, max_bins), cells)  # one of missing values
        sizes = np.diff(starts)
        fits = starts[0] == 0 and bool(((sizes >= 1) & (sizes <= most)).all())
        if not fits or not np.array_equal(flags, ~ordered):
            raise message.wrong("its columns and bins are not those of the schema")
        return Shape(starts, flags)


class ActiveSide(Protocol):
    """The active party's half of a protection."""

    def numbers(self, scores: Floats) -> Ints:
        """Gradients and Hessians of a new tree, as splits and leaves may use them."""
        ...

    def begin(self, numbers: Ints) -> PeerSteps[None]:
        """Whatever passive parties get once a tree."""
        ...

    def offers(self, level: Level, numbers: Ints, totals: Ints) -> PeerSteps[dict[str, Floats]]:
        """The score of each passive party's best split of every open node; -1 for none."""
        ...

    def choice(self, party: str, nodes: Ints) -> Mapping[str, NDArray[np.generic]]:
        """What a party is told of the splits it offered, beside the nodes it won."""
        ...

    def values(self, sums: Ints, counts: Ints) -> NDArray[np.float32]:
        """Leaf values (leaf, output) from sums (leaf, number) and numbers of rows."""
        ...

    def close(self) -> None:
        """End whatever was started for it."""
        ...


class PassiveSide(Protocol):
    """A passive party's half of a protection."""

    def answer(self, kind: str, message: PeerMessage) -> bytes:
        """Answer a question of this protection."""
        ...

    def chosen(
        self, nodes: list[int], message: PeerMessage
    ) -> tuple[list[Split], NDArray[np.uint8]]:
        """The splits of the nodes that it won, and which of their rows go right."""
        ...

    def close(self) -> None:
        """End whatever was started for it."""
        ...


class ExactNumbers:
    """Gradients as they are, and steps by them."""

    def __init__(self, settings: VerticalSettings, loss: Loss, target: Floats) -> None:
        self._settings, self._loss, self._target = settings, loss, target

    def numbers(self, scores: Floats) -> Ints:
        return gradients(self._loss, scores, self._target)

    def close(self) -> None:
        pass

    def values(self, sums: Ints, counts: Ints) -> NDArray[np.float32]:
        return leaf_values(sums, self._settings.learning_rate, self._settings.reg_lambda)


class ScoredThere:
    """The active side where passive parties score their own candidates."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def choice(self, party: str, nodes: Ints) -> Mapping[str, NDArray[np.generic]]:
        return {}

    @staticmethod
    def read_scores(answers: Mapping[str, PeerMessage], n_nodes: int) -> dict[str, Floats]:
        found = {name: message.numbers("scores", (n_nodes,)) for name, message in answers.items()}
        for name, scores in found.items():
            if bool(((scores < 0) & (scores != -1)).any()):
                raise answers[name].wrong("a score is below 0")
        return found


class ScoredHere:
    """The active side where it scores the candidates of passive parties from their sums."""

    def __init__(self, asking: Asking, settings: VerticalSettings) -> None:
        self._asking, self._settings = asking, settings
        self.shapes: dict[str, Shape] = {}
        self.doubted: set[str] = set()  # parties whose sums cannot be those of the rows
        self._found: dict[str, Found] = {}

    def score(self, party: str, histograms: Ints, totals: Ints) -> Floats:
        shape, s = self.shapes[party], self._settings
        arrays = (histograms, shape.starts, shape.categorical, totals)
        self._found[party] = search(*arrays, s.reg_lambda, s.min_child_weight)
        return self._found[party].scores

    def choice(self, party: str, nodes: Ints) -> Mapping[str, NDArray[np.generic]]:
        found = self._found[party]
        return {"columns": found.columns[nodes], "rights": found.rights[nodes].astype(np.uint8)}


class Passive:
    """What passive sides share: own bins, the level they are at, and what they found there."""

    def __init__(self, bins: Bins, settings: VerticalSettings, n_outputs: int) -> None:
        self.bins, self.settings, self.n_outputs = bins, settings, n_outputs
        self.level: Level | None = None
        self.found: Found | None = None
        self.histograms = Histograms(bins)
        self._trees = self._depth = 0
        self._told = False  # its splits of this level
        self._places = Places()

    @property
    def n_rows(self) -> int:
        return self.bins.codes.n_rows

    def begin_tree(self, message: PeerMessage) -> None:
        self._trees, self._depth = self._trees + 1, 0
        if self._trees > self.settings.n_trees:
            raise message.wrong(f"it begins more than the {self.settings.n_trees} agreed trees")
        self.level, self.found, self.histograms = None, None, Histograms(self.bins)
        self._places = Places()

    def take_level(self, message: PeerMessage) -> Level:
        """The next level, if it is one that was agreed on; answers of others would show more."""
        before, self._depth = self.level, self._depth + 1
        if self._depth > self.settings.max_depth:
            raise message.wrong(f"it goes deeper than the {self.settings.max_depth} agreed levels")
        found = Level.read(message, self.n_rows, before.n_nodes if before is not None else 0)
        check_level(found, before, self.settings.min_rows, message)
        self._places.take(found, message)
        self.level, self.found, self._told = found, None, False
        return found

    def scored(self, found: Found) -> bytes:
        self.found = found
        return pack({"kind": "scores"}, {"scores": found.scores})

    def chosen(
        self, nodes: list[int], message: PeerMessage
    ) -> tuple[list[Split], NDArray[np.uint8]]:
        if self.level is None or self.found is None:
            raise message.wrong("it asks for splits before any was offered")
        if any(node >= self.level.n_nodes or self.found.scores[node] < 0 for node in nodes):
            raise message.wrong("it asks for a split that was not offered")
        if self._told:  # all nodes are asked about at once; again would be about other splits
            raise message.wrong("it asks twice for splits of one level")
        self._told = True
        bits = sides(self.bins, self.level, self.found, nodes)
        self._places.split(nodes, bits)
        splits = self.found.splits(self.bins, nodes)
        told = zip(splits, map(self._places.of, nodes), strict=True)
        return [replace(split, tree=self._trees - 1, place=place) for split, place in told], bits

    def close(self) -> None:
        pass

    def unknown(self, kind: str) -> FormatError:
        return FormatError(f"the active party asked {kind!r}, which this protection does not know")


class PassiveUnscored(Passive):
    """A passive side whose candidates the active party scores; it says which ones it takes."""

    def shape_message(self) -> bytes:
        flags = self.bins.categorical.astype(np.uint8)
        return pack({"kind": "ready"}, {"starts": self.bins.starts, "categorical": flags})

    def chosen(
        self, nodes: list[int], message: PeerMessage
    ) -> tuple[list[Split], NDArray[np.uint8]]:
        if self.level is None:
            raise message.wrong("it asks for splits before any level was told")
        n, sizes = self.level.n_nodes, np.diff(self.bins.starts)
        columns = message.array("columns", np.int64, (len(nodes),))
        rights = message.array("rights", np.uint8, (len(nodes), int(sizes.max()))).astype(np.bool_)
        if bool((columns < 0).any()) or bool((columns >= len(sizes)).any()) or max(nodes) >= n:
            raise message.wrong("it asks for a column or node that there is not")
        for column, right in zip(columns.tolist(), rights, strict=True):
            real = right[: sizes[column] - 1]
            ordered = not self.bins.categorical[column]
            if ordered and (bool((np.diff(real.astype(np.int8)) < 0).any()) or real[:1].any()):
                raise message.wrong("it asks for a cut that this column cannot have")
            if ordered and not real.any():
                raise message.wrong("it asks for a cut that this column cannot have")
        every, most = np.full(n, -1, np.int64), int(sizes.max())
        all_rights = np.zeros((n, most), np.bool_)
        every[nodes], all_rights[nodes] = columns, rights
        self.found = Found(np.where(every >= 0, 0.0, -1.0), every, all_rights)
        return super().chosen(nodes, message)


__all__ = ["DONE", "ActiveSide", "ExactNumbers", "Passive", "PassiveSide", "PassiveUnscored",
           "ScoredHere", "ScoredThere", "Shape"]  # fmt: skip
