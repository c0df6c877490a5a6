"""What parties of a vertical run agree on: who holds what, the trees, and the protection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

from hedgerow.data.counts import refuse_unusual
from hedgerow.data.documents import Document, OneOf, Within
from hedgerow.data.schema import Schema
from hedgerow.data.weights import refuse_weight
from hedgerow.errors import SettingsError
from hedgerow.model.losses import loss_for
from hedgerow.privacy.noise.randomisers import LEAST_EPSILON, MOST_EPSILON

PROTECTIONS = ("none", "smm-1", "smm-2", "ldp", "paillier")
MECHANISMS = ("labels-once", "laplace", "duchi", "piecewise", "hybrid")
IDS = ("psi", "agreed")
# r of SMM as a share. The largest hides most, and no share protects: see `_UNPROTECTED`.
KERNEL_SHARE = 0.95
_UNPROTECTED = {  # figures of credit1_full in benchmarks/results/vertical_audit.json
    "smm-1": "from its answers the active party finds 100 % of the passive parties' split matrix "
    "at a share of 0.1 and 98 % at 0.5; at 0.95 one tree hides it, 8 trees show 89 % of it and 20 "
    "trees all, and from 0.5 upward passive parties read all labels from the vectors",
    "smm-2": "at a share of 0.95 passive parties find 99 % of the labels from one answer and all "
    "from two, and the active party which rows share a bin from the vectors",
}
_SETTINGS = Document("settings", SettingsError, key="setting", ending=". Nothing was sent.")
_Penalty = Annotated[float, Within(0.0, 1e12)]


@dataclass(frozen=True)
class VerticalSettings:
    """Settings of a run.

    `owners` says which party holds each column, `active` which one has the labels. Nodes with fewer
    than `min_rows` rows are not split, whatever the protection. `kernel_share` is r, the null-space
    vectors that SMM sends, as a share of the rows of a block; the answer uses a secret number r' of
    them, from `kernel_share` squared of the block's rows upward. `epsilon` is the label privacy of
    the whole run under `ldp`; `order` 1 is the paper's first-order score.
    """

    owners: Mapping[str, str] = field(default_factory=dict)
    active: str = ""
    protection: Annotated[str, OneOf(PROTECTIONS)] = "paillier"
    n_trees: Annotated[int, Within(1, 100_000)] = 50
    max_depth: Annotated[int, Within(1, 14)] = 4
    learning_rate: Annotated[float, Within(1e-6, 100.0)] = 0.2
    reg_lambda: _Penalty = 1.0
    gamma: _Penalty = 0.0
    min_child_weight: _Penalty = 1.0
    min_rows: Annotated[int, Within(2, 10**9)] = 16
    max_bins: Annotated[int, Within(2, 254)] = 32
    ids: Annotated[str, OneOf(IDS)] = "psi"
    merge: bool = False
    allow_unsafe: bool = False
    kernel_share: Annotated[float, Within(0.01, 1.0)] = KERNEL_SHARE
    block_rows: Annotated[int, Within(32, 8192)] = 256
    decoys: Annotated[int, Within(0, 4096)] = 8
    gaussians: Annotated[int, Within(1, 4096)] = 2
    epsilon: Annotated[float, Within(LEAST_EPSILON, 1e6)] = 1.0
    mechanism: Annotated[str, OneOf(MECHANISMS)] = "labels-once"
    order: Annotated[int, Within(1, 2)] = 2
    key_bits: Annotated[int, Within(1024, 8192)] = 2048

    def __post_init__(self) -> None:
        _SETTINGS.check(self)
        if self.order == 1 and self.protection != "ldp":
            raise SettingsError("order = 1 is a score of protection ldp alone. Nothing was sent.")
        least = self.min_child_weight if self.order == 2 else 0.0
        if not self.reg_lambda + least > 0:
            raise SettingsError(
                "reg_lambda is 0, and nothing else keeps a side of a split from having no Hessians "
                "to divide by. Nothing was sent. Choose a reg_lambda above 0."
            )
        self._check_unsafe()

    def _check_unsafe(self) -> None:
        if self.allow_unsafe or not self.protection.startswith("smm"):
            return
        raise SettingsError(
            f"{self.protection} does not protect with any kernel_share (it is "
            f"{self.kernel_share:g}): {_UNPROTECTED[self.protection]} (measured on credit "
            "data; see docs/vertical.md). Nothing was sent. Choose protection paillier or ldp, or "
            "say allow_unsafe if all parties accept it."
        )

    @property
    def role(self) -> str:
        """The name by which parties' limits allow such a run."""
        return f"fedxgboost-{self.protection}" + ("-merged" if self.merge else "")

    @property
    def passive(self) -> tuple[str, ...]:
        """The passive parties, in order."""
        return tuple(sorted(set(self.owners.values()) - {self.active}))

    @property
    def parties(self) -> tuple[str, ...]:
        """All parties; the active one first."""
        return (self.active, *self.passive)

    def columns_of(self, party: str, schema: Schema) -> tuple[int, ...]:
        """The places in the schema of the columns that a party holds."""
        return tuple(i for i, name in enumerate(schema.names) if self.owners[name] == party)

    def check(self, schema: Schema) -> None:
        """Raise unless every column of the schema has one owner, and labels somebody."""
        if missing := [name for name in schema.names if name not in self.owners]:
            raise SettingsError(
                f"column {missing[0]!r} has no owner. Nothing was sent. Name a party for each "
                "column of the schema, or take the column out of it."
            )
        if unknown := sorted(set(self.owners) - set(schema.names)):
            raise SettingsError(
                f"owners name the column {unknown[0]!r}, which is not in the schema"
            )
        if not self.active:
            raise SettingsError(
                "no active party: say which party has the labels. Nothing was sent."
            )
        if not self.passive:
            raise SettingsError(
                f"all columns belong to {self.active!r}; a vertical run needs a passive party too. "
                "Nothing was sent. Use `hedgerow train` for one table."
            )
        if self.protection == "ldp":
            self._check_epsilon(loss_for(schema.label).n_outputs)
        refuse_weight(schema.weight, "vertical training")
        refuse_unusual(schema.label, "vertical training")
        if schema.unit.kind != "row":
            raise SettingsError(
                "a vertical run knows one row a person; the schema's unit is a person"
            )

    def share(self, n_outputs: int) -> float:
        """The epsilon of one draw of noise: of a label, or of one output of one tree."""
        return self.epsilon / (1 if self.mechanism == "labels-once" else self.n_trees * n_outputs)

    def _check_epsilon(self, n_outputs: int) -> None:
        if not LEAST_EPSILON <= (share := self.share(n_outputs)) <= MOST_EPSILON:
            raise SettingsError(
                f"epsilon = {self.epsilon:g} leaves {share:g} for one draw of noise; it must be "
                f"{LEAST_EPSILON:g} to {MOST_EPSILON:g}. Nothing was sent. Change epsilon, or "
                "choose fewer trees or mechanism = labels-once."
            )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> VerticalSettings:
        """The settings that a model was made with, from what its record says beside others."""
        known = {f.name for f in fields(VerticalSettings)}
        return VerticalSettings.from_dict({k: v for k, v in record.items() if k in known})

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> VerticalSettings:
        return _SETTINGS.read(VerticalSettings, values)
