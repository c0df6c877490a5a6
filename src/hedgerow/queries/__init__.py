"""What may be asked: one file per kind, with shape, sensitivity, proof, and the code that keeps it.

To add one: a file here with a class that inherits `QueryBase` and does what `SumQuery` says, and a
line in `QUERIES` below; `testing.check_query` then attacks it with worst-case rows.

base.py              what a query is
calibration.py       how much noise a slot gives a query; draws none
label_sums.py        rows per class; the sum of a numeric label
column_counts.py     rows by cell of every column
column_sums.py       class counts or gradients by bin of every column
fine_column_sums.py  the same by bins between the cells of the base grid
column_hessians.py   Hessians by candidate bin
leaf_sums.py         gradients and Hessians by leaf
node_histograms.py   gradients by node, column and bin
score_counts.py      classes by score, for recalibration
class_histograms.py  class counts by leaf, column and bin, priced per leaf
impurity_bounds.py   how low one split could bring the impurity
split_choices.py     which cut each leaf gets, a choice at the gate
leaf_averages.py     leaf values of dp-xgboost
class_outcomes.py    how predicted classes turn out
error_counts.py      how large errors of a regression are
error_sums.py        sums of clipped errors
deviance_counts.py   how large deviances and errors of a model of counts are
deviance_sums.py     sums of clipped deviances and errors of counts
outcomes.py          shared by queries about finished predictions
cuts.py              shared: bins of columns
strategy.py          shared: strategy matrices by which bins are multiplied
gradients.py         shared: bounded gradients of pure plans
tree_nodes.py        shared: leaves, columns and prices of a growing tree
"""

from __future__ import annotations

from typing import Any

from hedgerow.data.documents import shown
from hedgerow.errors import FormatError
from hedgerow.packing import pack, unpack
from hedgerow.queries.base import (
    NO_TREES,
    Block,
    EnsembleRef,
    QueryBase,
    Sensitivity,
    SumQuery,
    size_of,
)
from hedgerow.queries.class_histograms import ClassHistograms
from hedgerow.queries.class_outcomes import ClassOutcomes
from hedgerow.queries.column_counts import ColumnCounts
from hedgerow.queries.column_hessians import ColumnHessians
from hedgerow.queries.column_sums import ColumnSums
from hedgerow.queries.cuts import n_bins_of
from hedgerow.queries.deviance_counts import DevianceCounts
from hedgerow.queries.deviance_sums import DevianceSums
from hedgerow.queries.error_counts import ErrorCounts
from hedgerow.queries.error_sums import ErrorSums
from hedgerow.queries.fine_column_sums import FineColumnSums
from hedgerow.queries.impurity_bounds import ImpurityBounds
from hedgerow.queries.label_sums import LabelSums
from hedgerow.queries.leaf_averages import LeafAverages
from hedgerow.queries.leaf_sums import LeafSums
from hedgerow.queries.node_histograms import NodeHistograms
from hedgerow.queries.score_counts import ScoreCounts
from hedgerow.queries.split_choices import SplitChoices

QUERIES: dict[str, Any] = {
    cls.kind: cls
    for cls in (
        LabelSums,
        ColumnCounts,
        ColumnHessians,
        ColumnSums,
        FineColumnSums,
        LeafSums,
        NodeHistograms,
        ScoreCounts,
        ClassHistograms,
        ImpurityBounds,
        SplitChoices,
        LeafAverages,
        ClassOutcomes,
        ErrorCounts,
        ErrorSums,
        DevianceCounts,
        DevianceSums,
    )
}

__all__ = [
    "NO_TREES",
    "QUERIES",
    "Block",
    "ClassHistograms",
    "ClassOutcomes",
    "ColumnCounts",
    "ColumnHessians",
    "ColumnSums",
    "DevianceCounts",
    "DevianceSums",
    "EnsembleRef",
    "ErrorCounts",
    "ErrorSums",
    "FineColumnSums",
    "ImpurityBounds",
    "LabelSums",
    "LeafAverages",
    "LeafSums",
    "NodeHistograms",
    "QueryBase",
    "ScoreCounts",
    "Sensitivity",
    "SplitChoices",
    "SumQuery",
    "n_bins_of",
    "query_bytes",
    "query_from_bytes",
    "size_of",
]


def query_bytes(query: SumQuery) -> bytes:
    """A query as bytes: the same query always gives the same bytes."""
    cache: dict[str, Any] = vars(query)  # frozen: packed once, as a cached property would be
    if "_packed" not in cache:
        values, arrays = query.parts()
        cache["_packed"] = pack({"kind": query.kind, "query": values}, arrays)
    packed: bytes = cache["_packed"]
    return packed


def query_from_bytes(data: bytes) -> SumQuery:
    """Read a query back; raises FormatError on anything that is not one."""
    values, arrays = unpack(data)
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in QUERIES:
        raise FormatError(f"unknown query kind {shown(kind)}")
    try:
        query: SumQuery = QUERIES[kind].from_parts(values["query"], arrays)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError("a query is not readable") from error
    return query
