"""Options that several commands share, and what was given by flags and environment.

A value comes from the flag, else the environment, else a plan file, else the method's default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.screen import start_logging
from hedgerow.errors import SettingsError
from hedgerow.privacy.settings import Privacy, Settings

_OWN_FLAG = {"epsilon": "--epsilon", "delta": "--delta", "trust": "--trust"}
# Options that set a value of a plan, by the name the value has there.
_FLAGS = {
    "n_trees": "--trees", "max_depth": "--depth", "learning_rate": "--learning-rate",
    "n_bins": "--bins", "method": "--method", "seed": "--seed", "spare": "--spare",
    "minimum_parties": "--minimum-parties", "colluding": "--colluding",
    "accounting": "--accounting", **_OWN_FLAG,
}  # fmt: skip


def _verbose(value: bool) -> bool:
    if value:
        start_logging(verbose=True)
    return value


SchemaFile = Annotated[Path, typer.Option("--schema", help="Schema file (TOML).")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A .hedge file.")]
Json = Annotated[
    bool, typer.Option("--json", help="Machine-readable result on stdout, nothing else there.")
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", callback=_verbose, help="Log every step on stderr (times in UTC)."),
]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", envvar="HEDGEROW_EPSILON", help="Privacy loss that is allowed."),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", envvar="HEDGEROW_DELTA", help="Its slack; well below 1 / rows."),
]
Method = Annotated[
    str | None,
    typer.Option("--method", envvar="HEDGEROW_METHOD", help="See `hedgerow methods`."),
]
Trust = Annotated[
    str | None,
    typer.Option(
        "--trust",
        envvar="HEDGEROW_TRUST",
        help="coordinator, parties or nobody; by default the parties where there are several.",
    ),
]
Spare = Annotated[
    int | None,
    typer.Option(
        "--spare", envvar="HEDGEROW_SPARE", help="Attempts paid in advance for drop-outs."
    ),
]
MinimumParties = Annotated[
    int | None,
    typer.Option(
        "--minimum-parties",
        envvar="HEDGEROW_MINIMUM_PARTIES",
        help="The smallest set of parties that is ever summed.",
    ),
]
Colluding = Annotated[
    int | None,
    typer.Option(
        "--colluding",
        envvar="HEDGEROW_COLLUDING",
        help="How many parties may leak, omit or lie.",
    ),
]
Accounting = Annotated[
    str | None,
    typer.Option(
        "--accounting",
        envvar="HEDGEROW_ACCOUNTING",
        help="exact, renyi to reproduce papers, or pure (no delta; private-tree and dp-xgboost).",
    ),
]
Trees = Annotated[
    int | None, typer.Option("--trees", envvar="HEDGEROW_TREES", help="Number of trees.")
]
Depth = Annotated[
    int | None, typer.Option("--depth", envvar="HEDGEROW_DEPTH", help="Depth of a tree.")
]
LearningRate = Annotated[
    float | None,
    typer.Option("--learning-rate", envvar="HEDGEROW_LEARNING_RATE", help="Step of a tree."),
]
Bins = Annotated[
    int | None, typer.Option("--bins", envvar="HEDGEROW_BINS", help="Cuts of a numeric column.")
]
Further = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Any further setting, e.g. batch_size=10; repeatable."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", envvar="HEDGEROW_SEED", help="Seeds which trees are tried, never the noise."
    ),
]


def given_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All values that were given, by the name they have in plans; what was not given is absent.

    `parameters` are those of a command, as typer's context has them.
    """
    given = {}
    for name, flag in _FLAGS.items():
        value = parameters.get(flag.removeprefix("--").replace("-", "_"))
        if value is not None:
            given[name] = value
    further: Sequence[str] = parameters.get("further") or ()
    for text in further:
        name, value = _further(text)
        if name in given:
            raise SettingsError(f"{name!r} is given twice; keep one of the two")
        given[name] = value
    if "method" in given:
        from hedgerow.methods.registry import method_named

        given["method"] = method_named(given["method"]).name
    return given


def flag_of(name: str) -> str:
    """How a value is given on the command line."""
    return _FLAGS.get(name, f"--set {name}")


def _further(text: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in text.partition("="))
    known: dict[str, Any] = {**Privacy(1.0, 1e-6).to_dict(), **Settings().to_dict()}
    if not equals or not value:
        raise SettingsError(f"--set {text!r} is not of the form key=value")
    if name in _OWN_FLAG:
        raise SettingsError(f"{name!r} has its own option; write {_OWN_FLAG[name]} {value}")
    if name not in known:
        names = sorted(set(known) - set(_OWN_FLAG))
        raise SettingsError(f"unknown setting {name!r}; known: {', '.join(names)}")
    kind = type(known[name])
    if kind is bool:
        if value.lower() not in ("true", "false"):
            raise SettingsError(f"--set {text!r}: {name} must be true or false")
        return name, value.lower() == "true"
    try:
        return name, kind(value)
    except ValueError as error:
        what = "a whole number" if kind is int else "a number"
        raise SettingsError(f"--set {text!r}: {name} must be {what}") from error


def privacy_names() -> set[str]:
    """Names of values that belong to the promise rather than to the method."""
    return {field.name for field in fields(Privacy)}
