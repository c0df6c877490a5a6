"""Options that several commands share, in groups that `--help` shows as panels.

A group is a dataclass whose fields are options. A command names the group as one parameter, and
`with_groups` flattens it into the options that Typer sees.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from hedgerow.cli.screen import start_logging

if TYPE_CHECKING:
    from hedgerow.data.csv_format import CsvFormat

PROMISE, METHOD, TABLES = "Privacy promise", "Method and settings", "Parties and data"
ENGINE, SAMPLE, OUTPUT = "Engine", "Public sample", "Output"
REQUEST = "What people at the parties are told"


def _verbose(value: bool) -> bool:
    if value:
        start_logging(verbose=True)
    return value


def _option(panel: str, flag: str, help_: str, **more: Any) -> Any:
    return typer.Option(flag, help=help_, rich_help_panel=panel, **more)


def _setting(panel: str, flag: str, help_: str) -> Any:
    """An option that may also be set by the environment: --epsilon, or HEDGEROW_EPSILON."""
    variable = "HEDGEROW_" + flag.removeprefix("--").replace("-", "_").upper()
    return _option(panel, flag, help_, envvar=variable)


SchemaFile = Annotated[
    Path, _option(TABLES, "--schema", "Schema file (TOML); `hedgerow schema draft` proposes one.")
]
DataFiles = Annotated[
    list[str] | None,
    _option(
        TABLES,
        "--data",
        "A party's table, Parquet or CSV; repeatable. With dask one folder of Parquet files.",
        metavar="[NAME=]PATH",
    ),
]
PartyCount = Annotated[int, _option(TABLES, "--parties", "How many will take part.", min=1)]
SiteFolder = Annotated[
    Path | None,
    _option(ENGINE, "--site", "The coordinator's site folder, for parties at other sites."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A .hedge file.")]
ModelOut = Annotated[Path, _option(OUTPUT, "--out", "Where the model goes (.hedge).")]
LedgerIn = Annotated[
    Path | None,
    _option(
        PROMISE,
        "--ledger",
        "Ledger file (or HEDGEROW_LEDGER); by default the one that counts these tables.",
    ),
]
DataName = Annotated[
    str | None,
    _option(
        PROMISE,
        "--data-name",
        "Name of the data set (or HEDGEROW_DATA_NAME), and so of its ledger in the state folder.",
    ),
]
RosterArgument = Annotated[
    Path, typer.Argument(metavar="ROSTER", help="The roster that all sites pin (.toml).")
]
Compared = Annotated[
    bool, typer.Option("--yes", help="Ask nothing: the phrase was compared by telephone.")
]
Json = Annotated[
    bool, _option(OUTPUT, "--json", "Machine-readable result on stdout, nothing else there.")
]
Verbose = Annotated[
    bool,
    _option(OUTPUT, "--verbose", "Log every step on stderr (times in UTC).", callback=_verbose),
]
Epsilon = Annotated[float | None, _setting(PROMISE, "--epsilon", "Privacy loss that is allowed.")]
Delta = Annotated[float | None, _setting(PROMISE, "--delta", "Its slack; well below 1 / rows.")]
Method = Annotated[str | None, _setting(METHOD, "--method", "See `hedgerow methods`.")]


@dataclass(frozen=True)
class CsvOptions:
    """How CSV files are written, where it is not as the schema's [csv] says."""

    separator: Annotated[
        str | None,
        _option(TABLES, "--separator", "Between fields of CSV files; or the word tab."),
    ] = None
    decimal: Annotated[
        str | None, _option(TABLES, "--decimal", "Decimal sign of CSV files: . or ,")
    ] = None
    thousands: Annotated[
        str | None, _option(TABLES, "--thousands", "Between thousands in CSV files, if anything.")
    ] = None
    encoding: Annotated[
        str | None, _option(TABLES, "--encoding", "Of CSV files, such as cp1252 or utf-16.")
    ] = None
    missing: Annotated[
        list[str] | None,
        _option(
            TABLES,
            "--missing",
            "A word for missing values in CSV files besides NA, null and the like; repeatable.",
            metavar="WORD",
        ),
    ] = None

    def applied(self, base: CsvFormat) -> CsvFormat:
        """The schema's format with what was given instead."""
        from hedgerow.data.csv_format import changed

        return changed(base, **vars(self))


@dataclass(frozen=True)
class EpsilonOptions:
    """How much may be learned about a row or a person."""

    epsilon: Epsilon = None
    delta: Delta = None


@dataclass(frozen=True)
class TrustOptions:
    """Who is trusted, and how the privacy loss is added up."""

    trust: Annotated[
        str | None,
        _setting(
            PROMISE,
            "--trust",
            "coordinator, parties (secure aggregation) or nobody (local differential privacy); by "
            "default the parties where there are several.",
        ),
    ] = None
    colluding: Annotated[
        int | None, _setting(PROMISE, "--colluding", "How many parties may leak, omit or lie.")
    ] = None
    minimum_parties: Annotated[
        int | None,
        _setting(PROMISE, "--minimum-parties", "The smallest set of parties that is ever summed."),
    ] = None
    spare: Annotated[
        int | None, _setting(PROMISE, "--spare", "Attempts paid in advance for drop-outs.")
    ] = None
    accounting: Annotated[
        str | None,
        _setting(
            PROMISE,
            "--accounting",
            "exact, renyi to reproduce papers, or pure (no delta; private-tree and dp-xgboost).",
        ),
    ] = None


@dataclass(frozen=True)
class PromiseOptions(TrustOptions, EpsilonOptions):
    """The whole promise: fields of EpsilonOptions come first."""


@dataclass(frozen=True)
class RequestOptions:
    """Who asks, what for and until when: shown at every party, and a part of the plan."""

    purpose: Annotated[
        str | None, _setting(REQUEST, "--purpose", "What the model is for, in one sentence.")
    ] = None
    asker: Annotated[
        str | None, _setting(REQUEST, "--asker", "Who asks: a person and an organisation.")
    ] = None
    ends: Annotated[
        str | None,
        _setting(REQUEST, "--ends", "Last day on which parties answer, such as 2026-12-31 (UTC)."),
    ] = None


@dataclass(frozen=True)
class LedgerOptions:
    """Which ledger a command is charged to."""

    ledger: LedgerIn = None
    data_name: DataName = None


@dataclass(frozen=True)
class BudgetOptions:
    """A ceiling over all runs of one ledger."""

    budget_epsilon: Annotated[
        float | None,
        _option(
            PROMISE, "--budget-epsilon", "Privacy budget: ceiling over all runs of this ledger."
        ),
    ] = None
    budget_delta: Annotated[
        float | None, _option(PROMISE, "--budget-delta", "Its delta; by default the plan's.")
    ] = None
    budget_pure: Annotated[
        float | None,
        _option(PROMISE, "--budget-pure", "The share of it that runs of pure epsilon may take."),
    ] = None


@dataclass(frozen=True)
class MethodOptions:
    """A method and its settings; those without an option of their own are given by --set."""

    method: Method = None
    trees: Annotated[int | None, _setting(METHOD, "--trees", "Number of trees.")] = None
    depth: Annotated[int | None, _setting(METHOD, "--depth", "Depth of a tree.")] = None
    learning_rate: Annotated[
        float | None, _setting(METHOD, "--learning-rate", "Step of a tree.")
    ] = None
    bins: Annotated[int | None, _setting(METHOD, "--bins", "Bins of a numeric column.")] = None
    further: Annotated[
        list[str] | None,
        _option(
            METHOD,
            "--set",
            "Any further setting, e.g. batch_size=10; repeatable.",
            metavar="KEY=VALUE",
        ),
    ] = None


@dataclass(frozen=True)
class SeededMethodOptions(MethodOptions):
    """A method, its settings, and what seeds the trees that it draws."""

    seed: Annotated[
        int | None, _setting(METHOD, "--seed", "Seeds which trees are tried, never the noise.")
    ] = None


@dataclass(frozen=True)
class ClusterOptions:
    """How a Dask cluster is reached."""

    scheduler: Annotated[
        str | None,
        _option(
            ENGINE,
            "--scheduler",
            "With dask: tls://host:port or tcp://host:port; without it a cluster starts here.",
            metavar="ADDRESS",
        ),
    ] = None
    workers: Annotated[
        int | None,
        _option(
            ENGINE, "--workers", "With dask, of a cluster started here; by default one a core."
        ),
    ] = None
    tls_ca: Annotated[Path | None, _option(ENGINE, "--tls-ca", "With dask: the CA's PEM file.")] = (
        None
    )
    tls_cert: Annotated[
        Path | None, _option(ENGINE, "--tls-cert", "With dask: our certificate.")
    ] = None
    tls_key: Annotated[Path | None, _option(ENGINE, "--tls-key", "With dask: our private key.")] = (
        None
    )

    def used_flags(self) -> list[str]:
        """Flags of the cluster that were given."""
        names = [field.name for field in fields(ClusterOptions)]
        return ["--" + n.replace("_", "-") for n in names if getattr(self, n) is not None]


@dataclass(frozen=True)
class SiteOptions:
    """What carries the messages, where the parties are, and how long they are waited for."""

    engine: Annotated[
        str,
        _setting(
            ENGINE,
            "--engine",
            "local (tables of this machine), grpc (parties at other sites; the default with "
            "--site), relay:SOCKET (carried by another runtime) or dask (one owner's table on a "
            "cluster).",
        ),
    ] = "local"
    site: SiteFolder = None
    timeout_seconds: Annotated[
        float,
        _option(
            ENGINE,
            "--timeout-seconds",
            "Between sites: how long one reply may take before it counts lost.",
        ),
    ] = 60.0
    wait_seconds: Annotated[
        float,
        _option(
            ENGINE,
            "--wait-seconds",
            "Between sites: how long to wait for parties when too few are left; with dask: for a "
            "worker when there is none, and a minute at least.",
        ),
    ] = 0.0
    without: Annotated[
        list[str] | None,
        _option(
            ENGINE, "--without", "Between sites: a party to leave out of this run; repeatable."
        ),
    ] = None


@dataclass(frozen=True)
class EngineOptions(ClusterOptions, SiteOptions):
    """An engine with all that it may need: fields of SiteOptions come first."""


@dataclass(frozen=True)
class SampleOptions:
    """A public or synthetic table on which epsilons are tried out."""

    sample: Annotated[
        Path | None,
        _option(SAMPLE, "--sample", "A public or synthetic table, to try epsilons out on."),
    ] = None
    metric: Annotated[
        str | None,
        _option(
            SAMPLE,
            "--metric",
            "auc; with a sample also accuracy, log_loss; rmse, mae, r2.",
        ),
    ] = None
    repeats: Annotated[
        int,
        _option(SAMPLE, "--repeats", "With a sample: trainings an epsilon.", min=1, max=100),
    ] = 3


def utc_text(seconds: float) -> str:
    """A time as people read it, in UTC.

    >>> utc_text(0.0)
    '1970-01-01 00:00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command as Typer registers it: every group among its parameters is flattened."""
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {
        p.name: p.annotation for p in parameters if is_dataclass(p.annotation)
    }
    flat: list[inspect.Parameter] = []
    for parameter in parameters:
        group = groups.get(parameter.name)
        options = [parameter] if group is None else _options_of(group)
        flat += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]

    def flattened(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    flattened.__name__, flattened.__doc__ = command.__name__, command.__doc__
    flattened.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return flattened


def _options_of(group: Any) -> list[inspect.Parameter]:
    kinds = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=kinds[field.name],
        )
        for field in fields(group)
    ]
