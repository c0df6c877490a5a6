"""Models in the formats of other libraries. Nothing but released values and public facts.

To add one: a file here, a line in `FORMATS` below, a method in `estimator_methods.py`.

forest.py             splits, leaf values and covers, shared by all formats
hazards.py            models of times to an event as such splits: rows by interval
metadata.py           what a file says of itself: the statement, its inputs
matrix.py             tables to the matrix that exports take
ordering.py           category splits as ordered ones, for formats without sets
xgboost_json.py       XGBoost's JSON
onnx_graph.py         ONNX
sklearn_arrays.py     scikit-learn's tree arrays, as .npz
treelite_model.py     Treelite
estimator_methods.py  exports as methods of estimators
files.py              files written by rename
"""

from hedgerow.export.hazards import interval_rows
from hedgerow.export.matrix import to_matrix
from hedgerow.export.metadata import Exported
from hedgerow.export.onnx_graph import to_onnx
from hedgerow.export.sklearn_arrays import to_sklearn
from hedgerow.export.treelite_model import to_treelite
from hedgerow.export.xgboost_json import category_names, feature_names, feature_types, to_xgboost

FORMATS = {
    "xgboost": to_xgboost,
    "onnx": to_onnx,
    "sklearn": to_sklearn,
    "treelite": to_treelite,
}

__all__ = [
    "Exported", "category_names", "feature_names", "feature_types", "interval_rows", "to_matrix",
    "to_onnx", "to_sklearn", "to_treelite", "to_xgboost",
]  # fmt: skip
