"""`hedgerow train --engine dask`: one owner's table on a Dask cluster is the one party of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.screen import messages, tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.coordinator.federation import Federation
    from hedgerow.data.schema import Schema
    from hedgerow.engines.dask.rows import ClusterRows
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.ledger.ledger import Ledger

_LEAST_WAIT = 60.0  # seconds, for workers that are being started
_HERE = ("tcp://127.", "tcp://localhost", "tcp://[::1]")

SchedulerAddress = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="With dask: tls://host:port or tcp://host:port; without it a cluster starts here.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", help="With dask, of a cluster started here; by default one a core."),
]
TlsCa = Annotated[Path | None, typer.Option("--tls-ca", help="With dask: the CA's PEM file.")]
TlsCert = Annotated[Path | None, typer.Option("--tls-cert", help="With dask: our certificate.")]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", help="With dask: our private key.")]


@dataclass(frozen=True)
class ClusterOptions:
    """How a training command reaches its cluster."""

    scheduler: str | None = None
    workers: int | None = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def given(self) -> list[str]:
        """Flags that were used."""
        values = vars(self).items()
        return ["--" + name.replace("_", "-") for name, value in values if value is not None]

    def check(self) -> None:
        files = [flag for flag in self.given() if flag.startswith("--tls")]
        if self.scheduler is None and files:
            raise SettingsError(f"{files[0]} needs --scheduler tls://host:port")
        if files and len(files) < 3:
            raise SettingsError("TLS needs --tls-ca, --tls-cert and --tls-key together")
        if self.scheduler is not None and self.workers is not None:
            raise SettingsError("--workers is for a cluster started here, without --scheduler")
        if self.workers is not None and self.workers < 1:
            raise SettingsError(f"--workers is {self.workers}; a cluster has at least 1")


class OnCluster:
    """The party `all`: partitions on workers, and the coordinator's ledger."""

    names = owners = ("all",)

    def __init__(self, data: Sequence[str], cluster: ClusterOptions, wait_seconds: float) -> None:
        if len(data) != 1:
            raise SettingsError(
                f"--engine dask takes --data once and there are {len(data)}: a folder of Parquet "
                "files or a pattern in quotes, as in --data 'folder/*.parquet'"
            )
        cluster.check()
        self._data, self._cluster = data[0], cluster
        self._wait_seconds = max(_LEAST_WAIT, wait_seconds)
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
        with _reading() as observe:
            self._rows = ClusterRows(source, schema, client, self._wait_seconds, observe)

    def ledger_path(self, beside: Path) -> Path:
        return beside

    @contextmanager
    def federation(self, schema: Schema, plan: Plan, ledger: Ledger) -> Iterator[Federation]:
        assert self._rows is not None
        yield _engine().dask_federation(self._rows, schema, plan.privacy, ledger)

    def close(self) -> None:
        self._open.close()


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


@contextmanager
def _reading() -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr while partitions are read."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console, columns = messages(), (TextColumn("{task.description}"), BarColumn())
    off = not console.is_terminal
    with Progress(
        *columns, MofNCompleteColumn(), TimeElapsedColumn(), console=console, disable=off
    ) as bar:
        task = bar.add_task("partitions read", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
