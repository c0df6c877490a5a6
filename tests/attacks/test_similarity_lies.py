"""A party of a similarity run that lies does not make others show more than was agreed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hedgerow.audit.simfl import narrowing
from hedgerow.errors import FormatError
from hedgerow.methods.simfl import messages as post
from hedgerow.methods.simfl.boosting import Grower
from hedgerow.methods.simfl.hashing import hash_family
from hedgerow.methods.simfl.run import agreement_for, similarity_role
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.protocol.roles import MemoryStore
from tests.methods.simfl.tables import dealt, numbers
from tests.sessions import delivered

N_COLUMNS = 12
PARTIES = ("p0", "p1")


def shown(facts: bytes | None) -> tuple[float, float]:
    """How far hashes of p0 narrow a column down if p1 states these facts, or its own.

    The first number is the share of its range that remains (median), the second how often one
    single cell does, for who knows all other columns.
    """
    schema, rows = numbers(400, N_COLUMNS)
    agreement = agreement_for(schema, PARTIES, SimilaritySettings(n_trees=1), "r")
    tables = dealt(rows, 2)
    roles = {n: similarity_role(n, tables[n], schema, agreement, MemoryStore()) for n in PARTIES}
    written = {n: roles[n].step({}).messages for n in PARTIES}
    roles["p0"].step({"p1": facts or written["p1"]["p0"]})  # it sends its hashes
    width = roles["p0"]._finding.width
    family = hash_family(schema, agreement.settings["seed"], N_COLUMNS - 1, width)
    found = narrowing(family, tables["p0"], n_columns=0)
    return float(np.median(found.all_but_one_known)), found.exposed


@pytest.mark.parametrize("n_rows", [200, 1 << 20, (1 << 31) - 1])
@pytest.mark.parametrize("spread", [0.0, 1e-12])
def test_false_facts_do_not_make_the_hashes_of_others_fine(n_rows: int, spread: float) -> None:
    """With very many rows that are all alike r would be close to 0, and a hash would tell all."""
    honest, exposed = shown(None)
    assert exposed < 0.05
    left, cells = shown(post.facts_message(n_rows, spread))
    assert left > honest / 2.5
    assert cells < 0.15


@pytest.mark.parametrize("deeper", [0, 1, 6])
def test_sums_by_leaf_are_sent_for_trees_as_deep_as_agreed(deeper: int) -> None:
    """Leaves of a deep tree hold one row each: their sums are its label, and say where it lies."""
    schema, rows = numbers(400, N_COLUMNS)
    own = SimilaritySettings(n_trees=2, max_depth=3)
    agreement = agreement_for(schema, PARTIES, own, "r")
    tables = dealt(rows, 2)
    roles = {n: similarity_role(n, tables[n], schema, agreement, MemoryStore()) for n in PARTIES}
    inboxes: dict[str, dict[str, bytes]] = {n: {} for n in PARTIES}
    for _ in range(5):  # facts, hashes, places, sums, and the shape of the first tree
        inboxes = delivered({n: roles[n].step(inboxes[n]) for n in PARTIES})
    gradients = np.random.default_rng(0).integers(1, 1 << 20, (200, 2))
    rule = replace(own.rule, max_depth=3 + deeper, min_child_weight=0.0)
    tree, _ = Grower(tables["p0"], schema).tree(gradients, rule)
    lie = {"p0": post.shape_message(0, tree.structure, schema)}
    if not deeper:
        assert roles["p1"].step(lie).messages.keys() == {"p0"}
        return
    with pytest.raises(FormatError, match="deeper than 3, which was agreed on"):
        roles["p1"].step(lie)
