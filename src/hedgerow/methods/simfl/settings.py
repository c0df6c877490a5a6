"""What parties agree on before a run: the settings of SimFL and TFL, with their checks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from hedgerow.data.schema import Schema
from hedgerow.errors import SettingsError
from hedgerow.methods.simfl.boosting import TreeRule
from hedgerow.methods.simfl.hashing import WINDOW, check_hashes, default_hashes

TURNS = ("round-robin", "blocks")
LEAVES = ("all", "similar")


@dataclass(frozen=True)
class SimilaritySettings:
    """Settings of a run.

    Similar rows' gradients count `similar_weight`-fold when a tree is shaped; `leaves` = "all" then
    sets its leaf values from exact leaf sums of all parties, "similar" from the weighted gradients
    themselves. The paper's algorithm is `similar_weight` = 1 with `leaves` = "similar".
    `similarity` = False passes trees on without similarity (TFL). `n_hashes` = 0 stands for
    min(40, d - 1), `window` is r in units of the typical distance between two rows of a party.
    With `keep` parties keep hashes and similar rows on their shelves; `continues` names such a run,
    of which only rows added since are hashed, sent and looked for (r stays what it was).
    """

    n_trees: int = 500
    max_depth: int = 8
    learning_rate: float = 0.03
    reg_lambda: float = 1.0
    min_child_weight: float = 1.0
    similar_weight: float = 0.3
    leaves: str = "all"
    turns: str = "round-robin"
    similarity: bool = True
    n_hashes: int = 0
    window: float = WINDOW
    seed: int = 0
    keep: bool = False
    continues: str = ""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("n_trees", 1, 100_000), ("max_depth", 1, 16), ("n_hashes", 0, 240),
            ("seed", 0, 2**63 - 1),
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise _wrong(name, value, f"a whole number from {low} to {high}")
        for name, above in (("learning_rate", 0), ("reg_lambda", -1), ("window", 0)):
            value = getattr(self, name)
            if not _is_number(value) or not (value > above and value >= 0):
                raise _wrong(name, value, "a number above 0" if above == 0 else "0 or more")
        for name, most in (("min_child_weight", 1e12), ("similar_weight", 1.0)):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value <= most:
                raise _wrong(name, value, f"a number from 0 to {most:g}")
        if self.leaves not in LEAVES:
            raise _wrong("leaves", self.leaves, " or ".join(LEAVES))
        if self.turns not in TURNS:
            raise _wrong("turns", self.turns, " or ".join(TURNS))
        for name in ("similarity", "keep"):
            if not isinstance(getattr(self, name), bool):
                raise _wrong(name, getattr(self, name), "true or false")
        if not isinstance(self.continues, str):
            raise _wrong("continues", self.continues, "the name of a run")
        if not self.similarity and (self.keep or self.continues):
            raise _wrong("similarity", False, "true where similar rows are kept or continued")

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
        known = {f.name for f in fields(SimilaritySettings)}
        if unknown := sorted(set(values) - known):
            raise SettingsError(
                f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}"
            )
        return SimilaritySettings(**values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _wrong(name: str, value: Any, wanted: str) -> SettingsError:
    return SettingsError(f"{name} is {value!r}; it must be {wanted}. Nothing was sent.")
