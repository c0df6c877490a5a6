"""What every query and every engine must keep; for whoever adds one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.federation import Federation
from hedgerow.data.rng import stream
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.model.losses import loss_for
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.plan import make_plan
from hedgerow.privacy.settings import Privacy, Settings
from hedgerow.queries import LabelSums, Sensitivity, SumQuery, size_of
from hedgerow.queries.calibration import noise_for, reach_of
from hedgerow.testing.noise import noise_off


def check_query(
    query: SumQuery, schema: Schema, rows: Rows, scores: NDArray[np.float64], bits: int
) -> None:
    """Attack a query: no single row may exceed the stated sensitivity, and answers must add up.

    `rows` and `scores` should hold the worst rows one can think of, saturated scores included. A
    statistic of a party does not add up over rows: there every row is taken away from all of them.
    Under a schema with weights a row may move the answer by so much more as its cap says.

    Where the gate makes something else of exact sums, the worst rows are also put into many tables,
    from empty ones to a million rows of one kind, and one row is added to each; that is done where
    `bits` are the question's own, since the gate has no others. Its `utilities` may
    then move apart by no more than `utility_range`, and what it `finishes`, in units of
    `released_blocks`, by no more than its dearest node pays.
    """
    query.check(schema)
    if query.step_trees and scores.shape[1] == loss_for(schema.label).n_outputs:
        steps = worst_steps(rows, scores.shape[1]) * query.step_scale
        scores = np.hstack([scores, np.nan_to_num(scores, posinf=1e300, neginf=-1e300) - steps])
    weights = np.concatenate([np.full(b.size, b.weight) for b in query.blocks])
    total = np.zeros(size_of(query), np.int64)
    together = query.answer(rows, scores, schema, bits)
    of_a_party = query.of_a_party
    for i in range(rows.n_rows):
        index = np.delete(np.arange(rows.n_rows), i) if of_a_party else np.array([i])
        answer = query.answer(rows.take(index), scores[index], schema, bits)
        answer = together - answer if of_a_party else answer
        if answer.dtype != np.int64 or answer.shape != total.shape:
            raise AssertionError(f"{query.kind} answers {answer.shape}, not {total.shape}")
        total += answer
        # Exact in Python integers where it matters: squares of int64 overflow.
        scaled = [int(a) / w for a, w in zip(answer, weights, strict=True) if a]
        l1 = sum(abs(s) for s in scaled) / 2.0**bits
        l2 = sum(s * s for s in scaled) ** 0.5 / 2.0**bits
        reach, bound = reach_of(query, schema), query.sensitivity
        bound = Sensitivity(reach * bound.l1, reach * bound.l2)
        if l1 > bound.l1 * (1 + 1e-12) or l2 > bound.l2 * (1 + 1e-12):
            raise AssertionError(
                f"{query.kind}: a row moves the answer by l1 {l1}, l2 {l2}; stated {bound}"
            )
    if not of_a_party and not np.array_equal(together, total):
        raise AssertionError(f"{query.kind}: the answer is not the sum over rows")
    _check_price(query)
    if query.needs_exact_sums and query.fine_bits in (None, bits):
        _check_exact_sums(query, schema, rows, scores)


def worst_steps(rows: Rows, n_outputs: int) -> NDArray[np.float64]:
    """Steps (row, output) that press against their bound, beyond it, and what no step can be.

    Of several outputs the row's own class, or it and the next one, moves against the others.
    """
    if n_outputs == 1:
        return np.resize([1.0, -1.0, 0.0, 0.5, -1e-9, 1e300, -np.inf, np.nan], (rows.n_rows, 1))
    is_label = np.arange(n_outputs) == rows.target[:, None]  # (row, output)
    toward = np.where(is_label, 1.0, -1.0)
    toward[4::5] *= np.roll(is_label, 1, axis=1)[4::5] - 0.5
    sizes = [0.5, -0.5, -0.5, 3.0, -1.0, -1e-9, 1e300, -np.inf, np.nan, 0.0, -2.0]
    return np.asarray(toward * np.resize(sizes, (rows.n_rows, 1)))


def _check_price(query: SumQuery) -> None:
    """A question that says what nodes pay moves by no more than that, in units of its noise."""
    priced = query.priced()
    paid = 0.0 if priced is None else priced.most
    if paid and not query.needs_exact_sums and query.sensitivity.l1 > paid * (1 + 1e-12):
        raise AssertionError(f"{query.kind}: a row moves {query.sensitivity.l1} and pays {paid}")


def _check_exact_sums(
    query: SumQuery, schema: Schema, rows: Rows, scores: NDArray[np.float64], n_tables: int = 24
) -> None:
    """Add one of the rows to tables of them; sums add up, so a table is a list of multiples."""
    rng, bits = stream(0, "neighbouring tables"), query.fine_bits or 0
    chosen = rng.permutation(rows.n_rows)[:40, None]
    answers = np.stack([query.answer(rows.take(i), scores[i], schema, bits) for i in chosen])
    for number in range(n_tables):
        n_kinds = int(rng.integers(1, 5)) if number else 0  # the first table is empty
        table = rng.integers(0, len(answers), n_kinds)
        times = np.floor(10 ** rng.uniform(0, 6, n_kinds)).astype(np.int64)
        before = times @ answers[table] if n_kinds else np.zeros_like(answers[0])
        added = rng.integers(0, len(answers), 4)
        check_neighbours(query, schema, before, before + answers[added])


def check_neighbours(
    query: SumQuery, schema: Schema, before: NDArray[np.int64], after: NDArray[np.int64]
) -> float:
    """Compare what becomes of exact sums when a row is added with what the question states.

    `after` are the sums (table, number) of tables with one row more than that of `before`, on the
    question's own grid. Returns which part of the bound was reached.
    """
    apart = _finished_apart if query.choice is None else _choices_apart
    reached = apart(query, schema, before, after)
    if reached > 1 + 1e-12:
        raise AssertionError(f"{query.kind}: a row moves it {reached} times as far as stated")
    return reached


def _choices_apart(query: SumQuery, schema: Schema, before: Any, after: Any) -> float:
    """How far one row moves two utilities of one leaf apart, in units of what is stated."""
    assert query.choice is not None
    bits, most = query.fine_bits or 0, 0
    utilities = query.utilities(before, schema, bits)
    for total in after:
        moved = zip(utilities, query.utilities(total, schema, bits), strict=True)
        for (one, ways), (two, same) in moved:
            if not np.array_equal(ways, same):
                raise AssertionError(f"{query.kind}: what is offered depends on the rows")
            most = max(most, int((two - one).max()) - int((two - one).min()))
    return most / float(query.choice.utility_range)


def _finished_apart(query: SumQuery, schema: Schema, before: Any, after: Any) -> float:
    """How far one row moves the finished numbers, in units of their noise, over the price."""
    bits, (block,), priced = query.fine_bits or 0, query.released_blocks, query.priced()
    assert priced is not None
    finished = query.finish(before, bits)
    moved = [float(np.abs(query.finish(total, bits) - finished).sum()) for total in after]
    unit = float(2.0**bits * block.weight * priced.most)
    return max(moved) / unit


def check_federation(
    make: Callable[[Sequence[Rows], str], Federation],
    schema: Schema,
    rows: Rows,
    trusts: Sequence[str] = ("coordinator", "parties"),
) -> None:
    """Same query, same exact sum, however many parties hold the rows, masked or not.

    `make` builds a federation of these tables under a trust ("coordinator" or "parties"). An
    engine of one owner has no parties to trust: give `trusts` without them.
    """
    query = LabelSums(len(schema.label.classes))
    sums = []
    for n_parties, trust in (
        (1, "coordinator"),
        (3, "coordinator"),
        (3, "parties"),
        (5, "parties"),
    ):
        if trust not in trusts:
            continue
        parts = [rows.take(np.arange(i, rows.n_rows, n_parties)) for i in range(n_parties)]
        privacy = Privacy(1.0, 1e-5, trust)
        declared = DeclaredQuery("check", query.kind, 1.0, size_of(query))
        plan = make_plan(schema.hash, "check", Settings(), privacy, [declared], seed=0)
        with noise_off():
            federation = make(parts, trust)
            federation.open(plan)
            noise = noise_for(query, plan.slots[0].mu, plan, schema)
            total = federation.sum(query, noise, slot=0, attempt=1)
        sums.append((noise.bits, total.values.view(np.int64).tolist()))
    if len({str(found) for found in sums}) != 1:
        raise AssertionError(f"sums differ between sets of parties: {sums}")
