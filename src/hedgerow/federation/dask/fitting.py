"""Training on Dask frames, for the estimators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import default_client

from hedgerow.errors import SettingsError, TableError
from hedgerow.federation.base import Federation
from hedgerow.federation.dask.cluster import connected
from hedgerow.federation.dask.engine import check_trust, dask_federation
from hedgerow.federation.dask.rows import ClusterRows
from hedgerow.federation.dask.sources import DaskFrame
from hedgerow.privacy.ledger import Ledger
from hedgerow.schema import Schema
from hedgerow.settings import Privacy


def check_frames(X: Any, y: Any, parties: Any) -> None:
    """Refuse what is no frame in partitions of rows, before anything is computed."""
    if parties is not None:
        raise SettingsError(
            "parties has no place with Dask frames: a cluster is one owner's, and one party. "
            "Nothing was asked."
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
def cluster_federation(
    X: Any, y: Any, schema: Schema, privacy: Privacy, ledger: Ledger
) -> Iterator[Federation]:
    """The rows of Dask frames as one party, on the cluster of the current client or one here."""
    check_trust(privacy.trust)
    source = DaskFrame(X, y)
    try:
        client = default_client()
    except ValueError:  # there is none
        with connected() as client, client.as_current():
            yield from _federation(source, schema, privacy, ledger, client)
    else:
        yield from _federation(source, schema, privacy, ledger, client)


def _federation(
    source: DaskFrame, schema: Schema, privacy: Privacy, ledger: Ledger, client: Any
) -> Iterator[Federation]:
    rows = ClusterRows(source, schema, client)
    try:
        yield dask_federation(rows, schema, privacy, ledger)
    finally:
        rows.close()
