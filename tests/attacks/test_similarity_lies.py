"""A party of a similarity run that lies about its rows does not make others show more of theirs."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow.similarity import letters as post
from hedgerow.similarity.audit import narrowing
from hedgerow.similarity.hashing import hash_family
from hedgerow.similarity.run import agreement_for, similarity_program
from hedgerow.similarity.settings import SimilaritySettings
from tests.similarity.tables import dealt, numbers

N_COLUMNS = 12
PARTIES = ("p0", "p1")


def shown(facts: bytes | None) -> tuple[float, float]:
    """How far hashes of p0 narrow a column down if p1 states these facts, or its own.

    The first number is the share of its range that remains (median), the second how often one
    single cell does, for who knows all other columns.
    """
    schema, rows = numbers(400, N_COLUMNS)
    agreement = agreement_for(schema, PARTIES, SimilaritySettings(n_trees=1))
    tables = dealt(rows, 2)
    programs = {n: similarity_program(n, tables[n], schema, agreement) for n in PARTIES}
    written = {n: programs[n].step({}).letters for n in PARTIES}
    programs["p0"].step({"p1": facts or written["p1"]["p0"]})  # it sends its hashes
    width = programs["p0"]._finding.width
    family = hash_family(schema, agreement.settings["seed"], N_COLUMNS - 1, width)
    found = narrowing(family, tables["p0"], n_columns=0)
    return float(np.median(found.all_but_one_known)), found.exposed


@pytest.mark.parametrize("n_rows", [200, 1 << 20, (1 << 31) - 1])
@pytest.mark.parametrize("spread", [0.0, 1e-12])
def test_false_facts_do_not_make_the_hashes_of_others_fine(n_rows: int, spread: float) -> None:
    """With very many rows that are all alike r would be close to 0, and a hash would tell all."""
    honest, exposed = shown(None)
    assert exposed < 0.05
    left, cells = shown(post.facts_letter(n_rows, spread))
    assert left > honest / 2.5
    assert cells < 0.15
