"""Exports as methods of estimators."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.export.matrix import to_matrix
from hedgerow.export.metadata import Exported
from hedgerow.export.onnx_graph import to_onnx
from hedgerow.export.sklearn_arrays import to_sklearn
from hedgerow.export.treelite_model import to_treelite
from hedgerow.export.xgboost_json import to_xgboost


class Exports:
    """What estimators can write down for other libraries once they are fitted."""

    def to_xgboost(self, path: str | PathLike[str]) -> Exported:
        """Write the model as XGBoost JSON."""
        return to_xgboost(self._fitted_model(), path)

    def to_onnx(self, path: str | PathLike[str]) -> Exported:
        """Write the model as ONNX; needs the extra `export`."""
        return to_onnx(self._fitted_model(), path)

    def to_sklearn(self, path: str | PathLike[str]) -> Exported:
        """Write the model as arrays that scikit-learn's trees are made of."""
        return to_sklearn(self._fitted_model(), path)

    def to_treelite(self, path: str | PathLike[str]) -> Exported:
        """Write the model as a Treelite checkpoint; needs the extra `export`."""
        return to_treelite(self._fitted_model(), path)

    def to_matrix(self, X: Any) -> NDArray[np.float32]:
        """A table as the matrix (row, column) that all of these take."""
        return to_matrix(self._fitted_model(), X)

    def _fitted_model(self) -> Any:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return self.model_  # type: ignore[attr-defined]
