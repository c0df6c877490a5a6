"""Training on Dask frames, for the estimators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from distributed import default_client

from hedgerow.data.schema import Schema
from hedgerow.engines.dask.cluster import connected
from hedgerow.engines.dask.engine import check_trust
from hedgerow.engines.dask.rows import ClusterRows
from hedgerow.engines.dask.sources import DaskFrame
from hedgerow.errors import SettingsError, TableError


def check_frames(
    X: Any, y: Any, parties: Any, trust: str | None, sample_weight: Any = None
) -> None:
    """Refuse what is no frame in partitions of rows, before anything is computed."""
    check_trust(trust or "coordinator")
    if parties is not None:
        raise SettingsError(
            "parties has no place with Dask frames: a cluster is one owner's, and one party. "
            "Nothing was asked."
        )
    if sample_weight is not None:
        raise SettingsError(
            "on a cluster weights are a column of the frame: name it in the schema's [weight], "
            "with a public cap, and leave sample_weight out. Nothing was asked."
        )
    for name, data in (("X", X), ("y", y)):
        partitioned = hasattr(data, "npartitions") and hasattr(data, "_meta")
        if not (partitioned and hasattr(data, "to_delayed")) and not (name == "y" and data is None):
            raise TableError(
                f"{name} is a {type(data).__name__}; on a cluster X is a Dask frame and y a column "
                "of the same frame, as in fit(ddf[features], ddf[label]). Nothing was asked."
            )
    if not hasattr(X, "columns") or hasattr(X._meta, "to_frame"):
        raise TableError(f"X is a {type(X).__name__}; give a Dask frame, as in ddf[features].")


@contextmanager
def cluster_rows(X: Any, y: Any, schema: Schema) -> Iterator[ClusterRows]:
    """The rows of Dask frames, on the cluster of the current client or on one started here."""
    source = DaskFrame(X, y)
    with ExitStack() as started:
        try:
            client = default_client()
        except ValueError:  # there is none
            client = started.enter_context(connected())
            started.enter_context(client.as_current())
        rows = ClusterRows(source, schema, client)
        started.callback(rows.close)
        yield rows
