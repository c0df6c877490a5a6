"""Agreements, roles and models: SimFL, TFL, SOLO and ALL-IN."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow.data.counts import refuse_unusual
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.data.weights import refuse_weight
from hedgerow.errors import FormatError
from hedgerow.methods.simfl.messages import read_tree
from hedgerow.methods.simfl.role import SimilarityRole
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Disclosure, Statement, of_schema
from hedgerow.protocol.roles import Agreement, Store

ROLE = "simfl"  # as limits of parties name it
# The name is part of agreements, which are hashed and sent; the audit stands in audit/simfl.py.
MEASURED = "hedgerow.similarity.audit"
_REASON = (
    "It was trained without differential privacy: parties saw hashes and gradient sums of each "
    "other's rows, and the trees hold exact values."
)


def disclosures(settings: SimilaritySettings, n_parties: int) -> tuple[Disclosure, ...]:
    """What a run shows without an epsilon."""
    trees = Disclosure(
        "everyone with the model",
        "all rows",
        "trees whose leaves and cuts follow from exact gradients of the growing party's rows",
    )
    if not settings.similarity or n_parties < 2:
        return (trees,)
    slabs = "its L hashes, hence with which rows it collides: a slab of values for each hash"
    kept = "; they are kept for later runs" if settings.keep else ""
    hashes = Disclosure("every other party", "each row", slabs + kept, MEASURED)
    sums = Disclosure(
        "the party whose turn it is",
        "the rows most similar to each of its rows",
        "sums of their gradients before every tree; where it is one row, that row's gradient, "
        "whose sign is its label",
        MEASURED,
    )
    leaves = Disclosure(
        "the party whose turn it is",
        "the rows in each leaf",
        "sums of their gradients, by party; where it is one row, that row's gradient",
    )
    facts = Disclosure("every other party", "a party", "its number of rows and how far they spread")
    return (hashes, sums, *((leaves,) if settings.leaves == "all" else ()), facts, trees)


def agreement_for(
    schema: Schema, parties: Sequence[str], settings: SimilaritySettings, run: str
) -> Agreement:
    """What all parties agree on before the first step."""
    refuse_weight(schema.weight, "similarity training")
    refuse_unusual(schema.label, "similarity training")
    if settings.similarity and len(parties) > 1:
        settings.hashes_for(schema)
    return Agreement(
        run,
        ROLE,
        schema.hash,
        tuple(sorted(parties)),
        settings.to_dict(),
        _shown(settings, len(parties), schema),
    )


def _shown(settings: SimilaritySettings, n_parties: int, schema: Schema) -> tuple[Disclosure, ...]:
    """What the run shows, and what a drafted schema shows already."""
    return (*disclosures(settings, n_parties), *of_schema(schema))


def similarity_role(
    name: str, rows: Rows, schema: Schema, agreement: Agreement, store: Store
) -> SimilarityRole:
    """A party's side of a run: the factory that an engine calls. It keeps what is agreed on."""
    if agreement.role != ROLE:
        raise FormatError(f"the agreement is about {agreement.role!r}, not {ROLE!r}")
    settings = SimilaritySettings.from_dict(agreement.settings)
    if agreement.disclosures != _shown(settings, len(agreement.parties), schema):
        raise FormatError(
            "the agreement does not name what this role shows. Nothing was sent. Make it again "
            "with this version of hedgerow."
        )
    return SimilarityRole(name, rows, schema, agreement, store)


def model_of(
    reports: Mapping[str, Sequence[bytes]],
    schema: Schema,
    agreement: Agreement,
    simulated: bool = True,
) -> Ensemble:
    """The model from the trees that the parties reported, each by whoever grew it."""
    settings = SimilaritySettings.from_dict(agreement.settings)
    parties = agreement.parties
    waiting = {name: list(reports.get(name, ())) for name in parties}
    loss = Ensemble((), schema, _statement(agreement, simulated)).loss
    trees = []
    for number in range(settings.n_trees):
        name = parties[settings.turn(number, len(parties))]
        if not waiting[name]:
            raise FormatError(f"{name} has not reported tree {number} of {settings.n_trees}")
        trees.append(read_tree(name, waiting[name].pop(0), number, schema, loss.n_outputs))
    record = {"method": "simfl" if settings.similarity else "tfl", **settings.to_dict()}
    return Ensemble(tuple(trees), schema, _statement(agreement, simulated), record=record)


def published_bytes(
    n_rows: int, n_parties: int, n_hashes: int, n_trees: int, depth: int
) -> dict[str, Any]:
    """The paper's count of bytes (its section 5.3): 8MNL, and 8T[N + (2^D - 1)(M - 1)]."""
    trees = 8 * n_trees * (n_rows + (2**depth - 1) * (n_parties - 1))
    return {"preprocessing": 8 * n_parties * n_rows * n_hashes, "training": trees}


def _statement(agreement: Agreement, simulated: bool) -> Statement:
    return Statement(
        guarantee="none",
        epsilon=0.0,
        delta=0.0,
        trust="parties" if len(agreement.parties) > 1 else "coordinator",
        accounting="none",
        parties=agreement.parties,
        simulated=simulated,
        disclosures=agreement.disclosures,
        reason=_REASON,
    )


def bound_of_theorem_2(
    n_others: int, depth: int, nearest: float, farthest: float, steepest: tuple[float, float],
    largest_step: float, delta: float,
) -> float:  # fmt: skip
    """The paper's bound on how far the weighted loss of a tree is from the true one.

    `nearest` is the largest distance (L1) of a row to its most similar one, `farthest` that of any
    two rows, `steepest` the largest gradient and Hessian.
    """
    apart = (1 - (1 - nearest / farthest) ** depth) * n_others
    apart += math.sqrt(n_others * math.log(1 / delta) / 2)
    g, h = steepest
    return apart * (2 * g * largest_step + 0.5 * h * largest_step**2)
