"""`hedgerow audit`: attack what a plan releases, on made-up rows, and compare with its promise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.given import given_values, make_plan
from hedgerow.cli.screen import print_json, results, show, table, tell
from hedgerow.cli.train import PlanIn
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.audit import AuditResult
    from hedgerow.data.schema import Schema
    from hedgerow.privacy.accounting.plan import Plan

ATTACK = "Attack"
REFUTED = 1  # exit code of an audit that refutes the promise


def _attack(flag: str, help_: str, **more: Any) -> Any:
    return typer.Option(flag, help=help_, rich_help_panel=ATTACK, **more)


SchemaIn = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        help="Schema file (TOML); with --evaluation that of the model.",
        rich_help_panel=options.TABLES,
    ),
]
Evaluation = Annotated[
    Path | None,
    _attack("--evaluation", "Audit a private evaluation of this model.", metavar="MODEL"),
]
CanaryCount = Annotated[
    int | None, _attack("--canaries", "How many are in or out by a coin; by default enough.", min=2)
]
RowCount = Annotated[int | None, _attack("--rows", "Made-up rows besides the canaries.", min=1)]
BlackBox = Annotated[
    bool, _attack("--black-box", "Look at the models alone, of many runs; for every method.")
]
RunCount = Annotated[int | None, _attack("--runs", "With --black-box: how many runs.", min=8)]
Confidence = Annotated[float, _attack("--confidence", "Of the lower bounds.", min=0.5, max=0.9999)]
RealRows = Annotated[
    list[str] | None, typer.Option("--data", hidden=True, help="Real rows are not audited.")
]
AuditOut = Annotated[
    Path | None,
    typer.Option("--out", help="Write the audit here (JSON).", rich_help_panel=options.OUTPUT),
]
PictureOut = Annotated[
    Path | None,
    typer.Option("--picture", help="Draw it here (SVG).", rich_help_panel=options.OUTPUT),
]


def audit(
    *,
    schema: SchemaIn = None,
    plan: PlanIn = None,
    evaluation: Evaluation = None,
    parties: options.PartyCount = 1,
    promise: options.PromiseOptions,
    settings: options.SeededMethodOptions,
    canaries: CanaryCount = None,
    rows: RowCount = None,
    black_box: BlackBox = False,
    runs: RunCount = None,
    confidence: Confidence = 0.95,
    data: RealRows = None,
    out: AuditOut = None,
    picture: PictureOut = None,
    json: options.Json = False,
) -> None:
    """Attack a plan's releases on made-up rows: epsilon promised beside epsilon measured.

    Nobody is asked and nothing is spent. Exit code 1 if the promise is refuted.
    """
    from hedgerow.cli.files import write_text
    from hedgerow.packing import canonical_json

    if data:
        raise SettingsError(
            "real rows are not audited: canaries among them change the model that people get, and "
            "no plan declares any. Nothing was asked and nothing was spent. Leave --data out; the "
            "audit makes up rows that fit the schema."
        )
    if runs is not None and not black_box:
        raise SettingsError("--runs belongs to --black-box; without it an audit is one run.")
    given = given_values(promise, settings)
    found = _audited(schema, plan, evaluation, given, parties, (canaries, rows, confidence),
                     runs or 200 if black_box else 1)  # fmt: skip
    if out is not None:
        write_text(out, canonical_json(found.to_dict()).decode() + "\n")
    if picture is not None:
        _draw(picture, found)
    if json:
        print_json(found.to_dict())
    else:
        _show(found)
    for what, path in (("Audit", out), ("Picture", picture)):
        if path is not None:
            tell(f"{what} written to {path}.")
    if found.violation:
        raise typer.Exit(REFUTED)


def _audited(
    schema: Path | None,
    plan: Path | None,
    evaluation: Path | None,
    given: dict[str, Any],
    parties: int,
    size: tuple[int | None, int | None, float],
    runs: int,
) -> AuditResult:
    from hedgerow.audit import black_box, one_run

    canaries, rows, confidence = size
    many: dict[str, Any] = {} if rows is None else {"rows": rows}
    if evaluation is not None:
        if runs > 1:
            raise SettingsError("an evaluation makes no model: leave --black-box out.")
        return _evaluation(evaluation, given, parties, canaries, many, confidence)
    public, chosen = _planned(schema, plan, given, parties)
    if runs > 1:
        return black_box(chosen, public, runs=runs, confidence=confidence, **many)
    held = parties if parties > 1 else None
    return one_run(chosen, public, canaries=canaries, parties=held, confidence=confidence, **many)


def _planned(
    schema: Path | None, plan: Path | None, given: dict[str, Any], parties: int
) -> tuple[Schema, Plan]:
    """The plan that is audited: a file as it is, or one made of what is given."""
    from hedgerow.data.schema import Schema
    from hedgerow.privacy.accounting.plan import Plan

    if schema is None:
        raise SettingsError("no schema: give --schema, or a model with --evaluation.")
    public = Schema.read(schema)
    if plan is None:
        return public, make_plan(public, given, parties)
    if given:
        raise SettingsError(
            f"a plan is audited as it stands, and {', '.join(sorted(given))} would change it. "
            "Nothing was audited. Leave one of the two out."
        )
    return public, Plan.read(plan)


def _evaluation(
    path: Path,
    given: dict[str, Any],
    parties: int,
    canaries: int | None,
    many: dict[str, Any],
    confidence: float,
) -> AuditResult:
    from hedgerow.audit import one_run
    from hedgerow.evaluation import evaluate, evaluation_plan
    from hedgerow.model.ensemble import Ensemble
    from hedgerow.model.trust import usual_trust
    from hedgerow.privacy.settings import privacy_from

    model = Ensemble.load(path)
    values = {"delta": model.statement.delta or 1e-6, "trust": usual_trust(parties), **given}
    if "epsilon" not in values:
        raise SettingsError("epsilon is not set: give --epsilon. Nothing was audited.")
    return one_run(
        evaluation_plan(model, privacy_from(values)),
        model.schema,
        canaries=canaries,
        parties=parties if parties > 1 else None,
        confidence=confidence,
        run=lambda gate: evaluate(gate, model),
        start=model,
        **many,
    )


def _draw(path: Path, found: AuditResult) -> None:
    from hedgerow.cli.files import write_text
    from hedgerow.inspection import plot_audit

    if path.suffix.lower() != ".svg":
        raise SettingsError(f"{path} is no name of a picture; name a file that ends in .svg")
    write_text(path, plot_audit(found).svg)


def _show(found: AuditResult) -> None:
    shown = table(f"Audit of {found.method}", "number", "mu", "epsilon", right=("mu", "epsilon"))
    for name, mu, epsilon in found.numbers():
        shown.add_row(name, f"{mu:.4g}", "" if epsilon is None else f"{epsilon:.4g}")
    results().print(shown)
    show(found.words(), style="red" if found.violation else None)
