"""Tables to the matrix that every export takes: numbers, and codes of listed values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.columns import Numbers
from hedgerow.data.encoding import ColumnCodes
from hedgerow.data.readers import Stream, stream_of
from hedgerow.data.schema import Numeric, Schema
from hedgerow.export.metadata import model_of


def to_matrix(model: Any, data: Any) -> NDArray[np.float32]:
    """Any table that the model could predict as a matrix (row, column) for its exports.

    Numbers stay numbers. A listed value becomes its position in the schema's list, a value outside
    of the list the position behind it (of an ordinal: missing) where the schema allows it, and is
    an error where not. Missing values are NaN.

    >>> schema = Schema.from_bounds({"age": (0, 110)}, classes=["no", "yes"])
    >>> to_matrix(schema, {"age": [30, None]}).tolist()
    [[30.0], [nan]]
    """
    schema = model if isinstance(model, Schema) else model_of(model).schema
    stream = stream_of(data, "table to predict", schema.csv)
    places = stream.find(schema.names)
    readers = [_Column(grid, stream) for grid in base_grid(schema)]
    parts: list[list[NDArray[np.float32]]] = [[] for _ in places]
    for first in range(0, len(places), stream.at_once):
        group = places[first : first + stream.at_once]
        for batch in stream.batches(group):
            for j in range(len(group)):
                parts[first + j].append(readers[first + j].read(batch.column(j)))
    for reader in readers:
        reader.check()
    columns = [np.concatenate(part) if part else np.zeros(0, np.float32) for part in parts]
    return np.column_stack(columns)  # (row, column)


class _Column:
    """One column of the matrix."""

    def __init__(self, grid: ColumnGrid, stream: Stream) -> None:
        self._grid, self._source, self._written = grid, stream.source, stream.csv
        self._codes = ColumnCodes(grid, stream.source, stream.csv)

    def read(self, values: Any) -> NDArray[np.float32]:
        codes = self._codes.read(values)  # counts what does not fit
        if isinstance(self._grid.column, Numeric):
            with np.errstate(over="ignore"):  # beyond float32 is beyond every threshold
                numbers = Numbers(self._source, self._written).read(values)
                return np.asarray(numbers).astype(np.float32)
        out = codes.astype(np.float32)
        out[codes == self._grid.missing_code] = np.nan
        return out

    def check(self) -> None:
        self._codes.check()
