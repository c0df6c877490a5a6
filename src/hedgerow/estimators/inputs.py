"""What scikit-learn asks of X and y; the schema, rows of parties, the user's ledger."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from hedgerow.data.readers import stream_of
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.data.values import MISSING_WORDS, Value, distinct
from hedgerow.data.weights import Weight
from hedgerow.errors import PlanWarning, SchemaError, SettingsError, TableError
from hedgerow.privacy.ledger.in_force import ledger_in_force
from hedgerow.privacy.ledger.ledger import Ledger


def names_of(X: Any) -> list[str] | None:
    """The names of a table's columns; None for arrays, which are matched by position."""
    names = stream_of(X, "X").names
    return None if names is None else list(names)


def is_dask(data: Any) -> bool:
    """Whether it is a Dask collection, whose rows lie on a cluster; loads nothing of Dask."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr")


def has_names(X: Any) -> bool:
    """Whether columns are found by name: a file, a dict of columns, a frame or an Arrow table."""
    if isinstance(X, (str, PathLike)):
        return True
    if isinstance(X, Mapping):
        return not hasattr(X, "tocsr")  # one sparse format is a dict
    return hasattr(X, "columns")


def is_named(X: Any) -> bool:
    """Whether those names are all text, as `feature_names_in_` requires."""
    if isinstance(X, (str, PathLike)) or not has_names(X):
        return has_names(X)
    names = X if isinstance(X, Mapping) else getattr(X, "column_names", X.columns)
    return all(isinstance(name, str) for name in names)


def width_of(X: Any) -> int | None:
    """How many columns an array has; None for tables with names, which may have more."""
    if has_names(X):
        return None
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple):
        shape = np.asarray(X).shape
    return int(shape[1]) if len(shape) == 2 else None


def check_fit(X: Any, y: Any) -> Any:
    """Refuse what cannot be fitted, in the words scikit-learn uses; return y as one column."""
    if y is None and not has_names(X):
        raise TableError(
            "fitting requires y to be passed, but the target y is None; only a table with names "
            "can hold its own label column. Nothing was asked."
        )
    if width_of(X) == 0:
        raise TableError(f"0 feature(s) (shape=({len(X)}, 0)) while a minimum of 1 is required.")
    if y is None or isinstance(y, (list, tuple)):
        return y
    if not hasattr(y, "__len__") or getattr(y, "ndim", 1) == 2:
        return column_or_1d(np.asarray(y), warn=True)
    return y


def with_cap(schema: Schema, max_weight: float | None) -> Schema:
    """The schema with the public cap on weights that a parameter gives."""
    if max_weight is None:
        return schema
    if schema.weight is None:
        return replace(schema, weight=Weight("sample_weight", max_weight))
    if schema.max_weight != max_weight:
        raise SettingsError(
            f"max_weight is {max_weight:g}, and the schema has weights of at most "
            f"{schema.max_weight:g}; leave max_weight out, or give the same. Nothing was asked."
        )
    return schema


def check_weights(schema: Schema, sample_weight: Any, X: Any, max_weight: float | None) -> bool:
    """Whether rows have weights; refuses them without a cap, and the schema's cap without them.

    As in scikit-learn every row counts once where an estimator is given no weights; with its
    parameter `max_weight` that is a warning.
    """
    if schema.weight is None:
        if sample_weight is None:
            return False
        raise SettingsError(
            "sample_weight needs a public cap: give max_weight=2 (or what no weight should exceed) "
            "to the estimator, or write [weight] with column and at_most into the schema. A row "
            "can count so many times, so all noise grows by as much. To weigh classes instead, "
            "give class_weight, which costs no noise. Nothing was asked."
        )
    column = schema.weight.column
    if sample_weight is not None or column in (names_of(X) or ()):
        return True
    if max_weight is None:
        raise SettingsError(
            f"the schema has the weight {column!r}, and there are no weights: give the table that "
            "column, or fit(X, y, sample_weight=...). Nothing was asked."
        )
    warnings.warn(
        f"max_weight is {max_weight:g} and fit got no sample_weight: every row counts once, and "
        f"all noise is {max_weight:g} times as wide as without a cap. Leave max_weight out, or "
        "hand weights on (set_fit_request(sample_weight=True) in searches).",
        PlanWarning,
        stacklevel=4,
    )
    return False


def check_width(X: Any, n_features: int, name: str) -> None:
    """Refuse an array that is not as wide as the schema, and rows that are not here."""
    if is_dask(X):
        raise TableError(
            "X is a Dask collection; predict partition by partition, as in "
            "X.map_partitions(model.predict, meta=(None, 'object'))."
        )
    width = width_of(X)
    if width is not None and width != n_features:
        raise TableError(
            f"X has {width} features, but {name} is expecting {n_features} features as input; "
            "an array is matched by position."
        )


def classes_in(y: Any) -> list[Value]:
    """The distinct labels, which the caller declares public."""
    labels = np.asarray(y.unique().compute() if is_dask(y) else y)
    with np.errstate(invalid="ignore"):
        check_classification_targets(labels)
    found: list[Value] = distinct(np.unique(labels).tolist())
    return found


def split_rows(rows: Rows, parties: Any) -> dict[str, Rows]:
    """Rows by party label; labels must be party names, one for every row."""
    # numpy would make text of None and NaN in a list, and a party of that text.
    labels = np.asarray(parties, object if isinstance(parties, (list, tuple)) else None)
    if labels.shape != (rows.n_rows,):
        raise TableError(
            f"parties has shape {labels.shape}; give one party name for each of {rows.n_rows} rows"
        )
    names, of = _told_apart(labels)
    absent = [place for place, name in enumerate(names) if name in MISSING_WORDS]
    if n_absent := int(np.sum(np.isin(of, absent))) if absent else 0:
        raise TableError(
            f"parties names no party for {n_absent} of {rows.n_rows} rows (None, NaN or an empty "
            "text); name the party of every row, or leave these rows out. Nothing was asked."
        )
    return dict(zip(names, rows.split(of, len(names)), strict=True))


def _told_apart(labels: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
    """Distinct labels in order, and which of them each row has; without sorting all rows."""
    import pyarrow as pa

    # As bytes of one length, which they are already: nothing is made of each label.
    flat = np.ascontiguousarray(labels.astype(str, copy=False))
    width = pa.binary(flat.dtype.itemsize)
    packed = pa.Array.from_buffers(width, flat.size, [None, pa.py_buffer(flat)])
    found = packed.dictionary_encode()
    texts: list[str] = np.frombuffer(b"".join(found.dictionary.to_pylist()), flat.dtype).tolist()
    names = sorted(texts)
    place = {name: i for i, name in enumerate(names)}
    small = np.uint16 if len(names) <= 1 << 16 else np.int64  # the former are sorted by digits
    return names, np.array([place[text] for text in texts], small)[found.indices.to_numpy()]


def class_array(classes: Sequence[Value]) -> NDArray[Any]:
    """Classes in their own type; text and numbers are not mixed into text."""
    kinds = {type(value) for value in classes}
    return np.array(classes) if len(kinds) == 1 else np.array(classes, dtype=object)


def schema_given(
    schema: Schema | str | None, bounds: Any, label: Mapping[str, Any] | None, X: Any, y: Any
) -> Schema:
    """The schema, or one made from bounds and facts about the label; never from rows."""
    if isinstance(schema, str | PathLike):
        return Schema.read(schema)
    if schema is not None:
        if not isinstance(schema, Schema):
            raise SchemaError(
                f"schema is a {type(schema).__name__}, and not a Schema or the path of a schema "
                "file; all else is given by name, as epsilon=1.0"
            )
        return schema
    if bounds is None or label is None:
        given = "" if bounds is None else " Here bounds are given, and nothing about the label."
        raise SchemaError(
            "the public facts are missing: give schema=Schema.read(path), or bounds together "
            "with the label's classes (label_bounds for regression). They are never read from "
            f"the rows, because that would leak them.{given}"
        )
    if isinstance(bounds, Mapping):
        return Schema.from_bounds(bounds, **label)
    names = names_of(X)
    if names is None:
        names = [f"x{j}" for j in range(width_of(X) or 0)]
    elif y is None:
        names = [name for name in names if name != "label"]  # what `from_bounds` calls it
    return Schema.from_bounds(dict.fromkeys(names, tuple(bounds)), **label)


def refuse_time_to_event(schema: Schema, name: str) -> None:
    """Refuse a label of times and events, for an estimator of classes or numbers."""
    if schema.label.task == "survival":
        raise SchemaError(
            f"the label {schema.label.name!r} is a time to the event {schema.label.event!r}, which "
            f"{name} does not predict; use PrivateSurvivalBoosting"
        )


def classes_given(classes: Sequence[Value] | str | None, y: Any) -> dict[str, Any] | None:
    """What is said of the label's classes: a list, or that those in y are public."""
    if isinstance(classes, str):
        if classes != "public" or y is None:
            raise SchemaError('classes is a list, or "public" together with y')
        return {"classes": classes_in(y)}
    return None if classes is None else {"classes": list(classes)}


@contextmanager
def ledger_given(ledger: Ledger | str | PathLike[str] | None) -> Iterator[Ledger]:
    """The ledger that pays: the user's, that of the block around the caller, or one in memory.

    One that is named by its path is open while it is used. A forked process opens the file of its
    parent's ledger for itself.
    """
    chosen = ledger_in_force() if ledger is None else ledger
    if isinstance(chosen, Ledger) and chosen.forked and chosen.path is not None:
        chosen = chosen.path
    if isinstance(chosen, Ledger):
        yield chosen
    elif chosen is None:
        yield Ledger.in_memory()
    else:
        assert isinstance(chosen, (str, PathLike))
        with closing(Ledger.open(chosen)) as opened:
            yield opened
