"""What every engine that carries sessions must keep: the same models as within one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.sessions import Session
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.engines.local_session import local_session
from hedgerow.methods.fedxgboost.run import agreement_for as vertical_agreement
from hedgerow.methods.fedxgboost.run import merged_from_reports, shares_of, vertical_role
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.methods.simfl.run import agreement_for as similarity_agreement
from hedgerow.methods.simfl.run import model_of, similarity_role
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.roles import Agreement, RoleFactory
from hedgerow.testing.noise import noise_off

MakeFederation = Callable[[Mapping[str, Rows], Mapping[str, RoleFactory]], Federation]
Read = Callable[[Mapping[str, Sequence[bytes]]], Ensemble]


def check_sessions(
    make: MakeFederation,
    schema: Schema,
    rows: Rows,
    names: Sequence[str] = ("p0", "p1", "p2"),
    *,
    short: bool = False,
) -> None:
    """Vertical and similarity sessions give the models that they give within one process.

    `make` builds a federation of these tables, by party, whose parties take these roles. A `short`
    check takes 25 steps instead of 74, for an engine that needs seconds for each.
    """
    trees, depth = (1, 1) if short else (2, 2)
    similarity = SimilaritySettings(n_trees=2 * trees, max_depth=depth + 1)
    shared = similarity_agreement(schema, names, similarity, "s")
    dealt = {name: rows.take(np.arange(i, rows.n_rows, 3)) for i, name in enumerate(names)}
    _compare(make, schema, dealt, shared, similarity_role, lambda r: model_of(r, schema, shared))
    for protection in ("none",) if short else ("none", "ldp"):
        owners = {column: names[j % 3] for j, column in enumerate(schema.names)}
        settings = VerticalSettings(
            owners, names[0], protection, n_trees=trees, max_depth=depth, ids="agreed", merge=True
        )
        split = shares_of(rows, schema, settings)
        agreed = vertical_agreement(schema, settings, f"vertical-{protection}")
        _compare(make, schema, split, agreed, vertical_role, merged_from_reports)


def _compare(
    make: MakeFederation,
    schema: Schema,
    tables: Mapping[str, Rows],
    agreement: Agreement,
    role: RoleFactory,
    read: Read,
) -> None:
    with noise_off():
        expected = read(local_session(agreement, role, tables, schema).reports)
        federation = make(tables, {agreement.role: role})
        found = read(Session(federation, agreement, Ledger.in_memory()).run())
    if found.trees != expected.trees:
        raise AssertionError(f"the session {agreement.role} gives another model than one process")
