"""`hedgerow train --engine dask`: one owner's table on a Dask cluster is the one party of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.progress import counting
from hedgerow.cli.screen import tell
from hedgerow.data.holdout import WHOLE
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.cli.options import ClusterOptions, EngineOptions
    from hedgerow.coordinator.federation import Federation
    from hedgerow.data.schema import Schema
    from hedgerow.engines.dask.rows import ClusterRows
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.ledger.ledger import Ledger

_LEAST_WAIT = 60.0  # seconds, for workers that are being started
_HERE = ("tcp://127.", "tcp://localhost", "tcp://[::1]")


class OnCluster:
    """The party `all`: partitions on workers, and the coordinator's ledger."""

    names = owners = ("all",)
    tables: tuple[Path, ...] = ()
    part = WHOLE

    def __init__(self, data: Sequence[str], engine: EngineOptions) -> None:
        if len(data) != 1:
            raise SettingsError(
                f"--engine dask takes --data once and there are {len(data)}: a folder of Parquet "
                "files or a pattern in quotes, as in --data 'folder/*.parquet'"
            )
        _check(engine)
        self._data, self._cluster = data[0], engine
        self._wait_seconds = max(_LEAST_WAIT, engine.wait_seconds)
        self._open = ExitStack()
        self._rows: ClusterRows | None = None

    def settled(self, schema: Schema, given: Mapping[str, Any]) -> dict[str, Any]:
        from hedgerow.methods.registry import method_named

        engine = _engine()
        if given.get("candidates") == "quantiles-not-private":
            raise SettingsError(
                "candidates = quantiles-not-private reads all rows in one place, and here no "
                'place has them. Choose "quantiles", which is paid for.'
            )
        only = method_named(given.get("method", "auto")).trust
        engine.check_trust(str(given.get("trust", only or "coordinator")))
        return dict(given)

    def check(self, schema: Schema) -> None:
        """Read the whole table on the cluster: what does not fit is found before a charge."""
        from hedgerow.engines.dask.cluster import Tls, connected
        from hedgerow.engines.dask.rows import ClusterRows
        from hedgerow.engines.dask.sources import ParquetFolder

        to, tls = self._cluster, None
        if to.scheduler and "tls://" not in to.scheduler and not to.scheduler.startswith(_HERE):
            tell(f"{to.scheduler} is not encrypted: exact sums cross the network in the clear.")
        if to.tls_ca and to.tls_cert and to.tls_key:
            tls = Tls(str(to.tls_ca), str(to.tls_cert), str(to.tls_key))
        client = self._open.enter_context(connected(to.scheduler, tls, to.workers))
        source = ParquetFolder(self._data, client, schema, self._wait_seconds)
        with counting("partitions read") as bar:
            self._rows = ClusterRows(source, schema, client, self._wait_seconds, bar.reached)

    @property
    def files(self) -> tuple[Path, ...]:
        pattern = Path(self._data)
        return (pattern.parent if "*" in pattern.name else pattern,)

    @property
    def site_ledger(self) -> Path | None:
        return None

    @contextmanager
    def federation(self, schema: Schema, plan: Plan, ledger: Ledger) -> Iterator[Federation]:
        assert self._rows is not None
        yield _engine().dask_federation(self._rows, schema, plan.privacy, ledger)

    def close(self) -> None:
        self._open.close()


def _check(cluster: ClusterOptions) -> None:
    files = [flag for flag in cluster.used_flags() if flag.startswith("--tls")]
    if cluster.scheduler is None and files:
        raise SettingsError(f"{files[0]} needs --scheduler tls://host:port")
    if files and len(files) < 3:
        raise SettingsError("TLS needs --tls-ca, --tls-cert and --tls-key together")
    if cluster.scheduler is not None and cluster.workers is not None:
        raise SettingsError("--workers is for a cluster started here, without --scheduler")
    if cluster.workers is not None and cluster.workers < 1:
        raise SettingsError(f"--workers is {cluster.workers}; a cluster has at least 1")


def _engine() -> Any:
    """The engine's module, if Dask is installed."""
    try:
        from hedgerow.engines.dask import engine
    except ImportError as error:
        raise SettingsError(
            f"--engine dask needs Dask, and importing it failed ({error}); install it with "
            "pip install 'hedgerow[dask]'"
        ) from error
    return engine
