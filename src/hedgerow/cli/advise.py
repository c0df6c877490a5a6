"""`hedgerow advise`: how much epsilon is needed, from public facts or a public sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import curves, options
from hedgerow.cli.given import given_values, make_plan
from hedgerow.cli.screen import print_json, show, tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.inspection.advice import Answer, Curve, Facts
    from hedgerow.privacy.settings import Privacy

Rows = Annotated[
    int,
    typer.Option(
        "--rows",
        min=1,
        help="Rows of all parties together, about.",
        rich_help_panel=options.TABLES,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate",
        help="Share of the rarer class of a binary label, if public; else one half.",
        rich_help_panel=options.TABLES,
    ),
]
Epsilons = Annotated[
    list[float] | None,
    typer.Option(
        "--epsilon",
        help="An epsilon to look at; repeatable. By default several.",
        rich_help_panel=options.PROMISE,
    ),
]
TargetError = Annotated[
    float | None,
    typer.Option(
        "--target-error",
        help="Which epsilon gives a leaf weight this standard error?",
        rich_help_panel=options.PROMISE,
    ),
]
Target = Annotated[
    float | None,
    typer.Option(
        "--target",
        help="With a sample: which epsilon reaches this value?",
        rich_help_panel=options.SAMPLE,
    ),
]
PictureOut = Annotated[
    Path | None,
    typer.Option("--out", help="Write a picture here (SVG).", rich_help_panel=options.OUTPUT),
]


def advise(
    *,
    schema: options.SchemaFile,
    rows: Rows,
    rate: Rate = None,
    parties: options.PartyCount = 3,
    epsilon: Epsilons = None,
    delta: options.Delta = None,
    target_error: TargetError = None,
    trust: options.TrustOptions,
    settings: options.MethodOptions,
    sample: options.SampleOptions,
    target: Target = None,
    out: PictureOut = None,
    json: options.Json = False,
) -> None:
    """Say how much epsilon is needed, from public facts or a public sample. Asks nobody."""
    if sample.sample is None and (target is not None or sample.metric not in (None, "auc")):
        raise SettingsError(
            "--target, and any --metric but auc, need --sample: a public or synthetic table to try "
            "epsilons out on. From public facts alone there is --target-error. Nothing was asked."
        )
    promise = options.EpsilonOptions(delta=delta)
    facts, privacy = _facts(given_values(promise, trust, settings), schema, rows, rate, parties)
    chosen = curves.check_epsilons(
        epsilon or (curves.STEPS if sample.sample is None else curves.TRIED)
    )
    lines = curves.errors_by_epsilon(facts, privacy, chosen)
    curve = curves.simulated(facts, privacy, sample, chosen)
    needed = _needed(facts, privacy, target_error, curve, target)
    answers = _answers(facts, privacy, curve, epsilon)
    if sample.metric is not None and not answers:
        raise SettingsError(
            "public tables have an answer in auc for the method auto and a binary label, where "
            "there was as much signal. Nothing was asked. Give --sample for another."
        )
    if out is not None:
        _draw(out, facts, lines, curve, (target_error, target), needed)
    if json:
        told: dict[str, Any] = {"rows": rows, "errors": lines, **needed}
        told["answers"] = [answer.to_dict() for answer in answers]
        print_json({**told, "curve": None if curve is None else curve.to_dict()})
    else:
        _show(facts, lines, curve, (target_error, target), needed)
        for answer in answers:
            show(f"Answer: {answer.words}.", style="bold")
        if answers and curve is None:
            show("How hard your label is decides where in that range; --sample FILE narrows it.")
        show("Nobody was asked and nothing was spent.")
    if out is not None:
        tell(f"Picture written to {out}.")


def _facts(
    given: dict[str, Any], schema: Path, rows: int, rate: float | None, parties: int
) -> tuple[Facts, Privacy]:
    """Public facts, and the promise with any epsilon; as `hedgerow plan` settles them."""
    from hedgerow.data.schema import Schema
    from hedgerow.inspection.advice import Facts
    from hedgerow.methods.registry import method_named
    from hedgerow.privacy.settings import DEFAULTS

    public = Schema.read(schema)
    if not method_named(given.get("method", "auto")).can_be_pure:
        given.setdefault("delta", 1e-6)
    plan = make_plan(public, {**given, "epsilon": 1.0}, parties)
    settings = {name: value for name, value in given.items() if name in DEFAULTS}
    facts = Facts(public, rows, parties, 0.5 if rate is None else rate, plan.method, settings)
    return facts, plan.privacy


def _needed(
    facts: Facts,
    privacy: Privacy,
    target_error: float | None,
    curve: Curve | None,
    target: float | None,
) -> dict[str, Any]:
    from hedgerow.inspection.advice import epsilon_for_error

    needed: dict[str, Any] = {}
    if target_error is not None:
        needed["epsilon_for_error"] = epsilon_for_error(facts, privacy, target_error)
    if curve is not None and target is not None:
        needed["epsilon_for_target"] = curve.epsilon_for(target)
    return needed


def _answers(
    facts: Facts, privacy: Privacy, curve: Curve | None, chosen: list[float] | None
) -> list[Answer]:
    """What the measure will about be at the epsilons asked for, or at 1 where none was."""
    from hedgerow.inspection.advice import from_public_tables, from_sample

    epsilons = sorted(set(chosen or [1.0]))
    if curve is not None:
        return [from_sample(curve, epsilon) for epsilon in epsilons]
    answers = (from_public_tables(facts, privacy, epsilon) for epsilon in epsilons)
    return [answer for answer in answers if answer is not None]


def _draw(
    out: Path,
    facts: Facts,
    lines: list[dict[str, Any]],
    curve: Curve | None,
    targets: tuple[float | None, float | None],
    needed: dict[str, Any],
) -> None:
    if curve is not None:
        mark = needed.get("epsilon_for_target")
        picture = curves.curve_picture(curve, targets[1], mark, _needs(mark))
    elif lines:
        mark = needed.get("epsilon_for_error")
        picture = curves.error_picture(lines, facts, targets[0], mark, _needs(mark))
    else:
        raise SettingsError("there is nothing to draw for this method; give --sample")
    curves.write_picture(out, picture)


def _needs(mark: float | None) -> str:
    return "" if mark is None else f"needs epsilon {mark:.2g}"


def _show(
    facts: Facts,
    lines: list[dict[str, Any]],
    curve: Curve | None,
    targets: tuple[float | None, float | None],
    needed: dict[str, Any],
) -> None:
    curves.show_errors(lines, facts)
    if curve is not None:
        curves.show_curve(curve)
    if targets[0] is not None:
        epsilon = needed["epsilon_for_error"]
        answer = (
            "no epsilon up to 1000 gives" if epsilon is None else f"epsilon = {epsilon:.3g} gives"
        )
        show(f"Answer: {answer} a leaf weight a standard error of {targets[0]:g}.", style="bold")
    if curve is not None and targets[1] is not None:
        epsilon = needed["epsilon_for_target"]
        if epsilon is None:
            best = "" if _reaches(curve, targets[1]) else (
                f" Without noise the method reaches {curve.without.mean:.4f} on this sample: more "
                "epsilon does not help, more columns or rows may."
            )  # fmt: skip
            text = f"no epsilon that was tried reaches {curve.metric} = {targets[1]:g}.{best}"
        else:
            least = epsilon == curve.points[0].epsilon
            text = (
                f"epsilon = {epsilon:.2g}{', the smallest that was tried,' if least else ''} "
                f"reaches {curve.metric} = {targets[1]:g} on this sample."
            )
        show(f"Answer: {text}", style="bold")


def _reaches(curve: Curve, target: float) -> bool:
    return curve.without.mean >= target if curve.rising else curve.without.mean <= target
