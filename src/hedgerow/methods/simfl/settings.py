"""What parties agree on before a run: the settings of SimFL and TFL, with their checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from hedgerow.data.documents import Document, OneOf, Within
from hedgerow.data.schema import Schema
from hedgerow.errors import SettingsError
from hedgerow.methods.simfl.boosting import TreeRule
from hedgerow.methods.simfl.hashing import WINDOW, check_hashes, default_hashes

TURNS = ("round-robin", "blocks")
LEAVES = ("all", "similar")
_SETTINGS = Document("settings", SettingsError, key="setting", ending=". Nothing was sent.")


@dataclass(frozen=True)
class SimilaritySettings:
    """Settings of a run.

    Similar rows' gradients count `similar_weight`-fold when a tree is shaped; `leaves` = "all" then
    sets its leaf values from exact leaf sums of all parties, "similar" from the weighted gradients
    themselves. The paper's algorithm is `similar_weight` = 1 with `leaves` = "similar".
    `similarity` = False passes trees on without similarity (TFL). `n_hashes` = 0 stands for
    min(40, d - 1), `window` is r in units of the typical distance between two rows of a party.
    With `keep` parties keep hashes and similar rows in their stores; `continues` names such a run,
    of which only rows added since are hashed, sent and looked for (r stays what it was).
    """

    n_trees: Annotated[int, Within(1, 100_000)] = 500
    max_depth: Annotated[int, Within(1, 16)] = 8
    learning_rate: Annotated[float, Within(above=0)] = 0.03
    reg_lambda: Annotated[float, Within(low=0)] = 1.0
    min_child_weight: Annotated[float, Within(0, 1e12)] = 1.0
    similar_weight: Annotated[float, Within(0, 1)] = 0.3
    leaves: Annotated[str, OneOf(LEAVES)] = "all"
    turns: Annotated[str, OneOf(TURNS)] = "round-robin"
    similarity: bool = True
    n_hashes: Annotated[int, Within(0, 240)] = 0
    window: Annotated[float, Within(above=0)] = WINDOW
    seed: Annotated[int, Within(0, 2**63 - 1)] = 0
    keep: bool = False
    continues: str = ""

    def __post_init__(self) -> None:
        _SETTINGS.check(self)
        if not self.similarity and (self.keep or self.continues):
            raise _SETTINGS.wrong(
                "similarity is False; it must be true where similar rows are kept or continued"
            )

    @property
    def rule(self) -> TreeRule:
        return TreeRule(
            self.max_depth,
            float(self.learning_rate),
            float(self.reg_lambda),
            float(self.min_child_weight),
        )

    def hashes_for(self, schema: Schema) -> int:
        """L, checked against the dimensions of the schema."""
        n_hashes = self.n_hashes or default_hashes(schema)
        check_hashes(schema, n_hashes)
        return n_hashes

    def turn(self, tree: int, n_parties: int) -> int:
        """Whose turn it is to grow a tree: a place in the list of parties."""
        if self.turns == "round-robin":
            return tree % n_parties
        return tree * n_parties // self.n_trees

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> SimilaritySettings:
        return _SETTINGS.read(SimilaritySettings, values)
