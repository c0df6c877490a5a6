"""`hedgerow plan`: what a run will ask and cost, from public facts alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import curves, options
from hedgerow.cli.given import given_values, make_plan, tell_cautions
from hedgerow.cli.screen import print_json, results, show, size_text, table, tell
from hedgerow.errors import SettingsError
from hedgerow.privacy.settings.methods import FEW_ROUNDS

if TYPE_CHECKING:
    from hedgerow.data.schema import Schema
    from hedgerow.inspection.advice import Curve, Expected, Facts
    from hedgerow.privacy.accounting.plan import Plan

ExpectedRows = Annotated[
    int | None,
    typer.Option(
        "--rows",
        min=1,
        help="Rows to expect, for the error of leaf weights; not in the plan.",
        rich_help_panel=options.TABLES,
    ),
]
PlanOut = Annotated[
    Path | None,
    typer.Option("--out", help="Write the plan here (TOML).", rich_help_panel=options.OUTPUT),
]
PictureOut = Annotated[
    Path | None,
    typer.Option(
        "--picture",
        help="Draw error or accuracy against epsilon here (SVG).",
        rich_help_panel=options.OUTPUT,
    ),
]


def plan(
    *,
    schema: options.SchemaFile,
    parties: options.PartyCount = 3,
    rows: ExpectedRows = None,
    promise: options.PromiseOptions,
    request: options.RequestOptions,
    settings: options.SeededMethodOptions,
    sample: options.SampleOptions,
    out: PlanOut = None,
    picture: PictureOut = None,
    json: options.Json = False,
) -> None:
    """Show what a run will ask, what it will cost and how much it will send. Asks nobody."""
    from hedgerow.cli.files import write_text
    from hedgerow.data.schema import Schema

    public = Schema.read(schema)
    given = given_values(promise, settings, request)
    new_plan = make_plan(public, given, parties)
    tell_cautions(new_plan, public)
    needed = sample.sample is not None or bool(picture)
    facts = _facts(new_plan, public, given, parties, rows, needed)
    expected = None if facts is None else _expected(facts, new_plan)
    curve = None
    if facts is not None and sample.sample is not None:
        curve = curves.simulated(facts, new_plan.privacy, sample, _around(new_plan.privacy.epsilon))
    if picture is not None and facts is not None:
        _draw(picture, facts, new_plan, curve)
    if out is not None:
        write_text(out, plan_text(new_plan))
    if json:
        rule = rule_of(new_plan, public) if new_plan.method == "auto" else []
        told: dict[str, Any] = {"expected": None if expected is None else asdict(expected)}
        told["curve"] = None if curve is None else curve.to_dict()
        if needed_events := events_needed_text(new_plan, public):
            told["events"] = needed_events
        facts_ = {**summary(new_plan, public, parties), **told}
        print_json({**facts_, "rule": rule, "plan": new_plan.to_dict()})
    else:
        _show(new_plan, public, parties, facts, expected)
        if curve is not None:
            curves.show_curve(curve)
        show("Nothing was asked and nothing was spent.")
    for what, path in (("Plan", out), ("Picture", picture)):
        if path is not None:
            tell(f"{what} written to {path}.")


def _facts(
    made: Plan, schema: Schema, given: dict[str, Any], parties: int, rows: int | None, needed: bool
) -> Facts | None:
    """Public facts with the number of rows, if it is given; an error where nothing goes without."""
    from hedgerow.inspection.advice import Facts
    from hedgerow.privacy.settings import DEFAULTS

    n_rows = rows or made.settings.public_rows
    if schema.label.task == "survival" and not needed:
        return None  # what is expected of leaf weights is known for classes and numbers
    if not n_rows:
        if needed:
            raise SettingsError(
                "a curve or picture needs the number of rows to expect: give --rows. It does not "
                "become a part of the plan. Nothing was asked."
            )
        return None
    settings = {name: value for name, value in given.items() if name in DEFAULTS}
    return Facts(schema, n_rows, parties, method=made.method, settings=settings)


def _expected(facts: Facts, made: Plan) -> Expected | None:
    from hedgerow.inspection.advice import expected_error

    return expected_error(facts, made)


def _around(epsilon: float) -> tuple[float, ...]:
    return curves.check_epsilons([epsilon * part for part in (0.1, 0.3, 1.0, 3.0, 10.0)])


def _draw(path: Path, facts: Facts, made: Plan, curve: Curve | None) -> None:
    epsilon = made.privacy.epsilon
    if curve is not None:
        drawn = curves.curve_picture(curve, None, epsilon, "this plan")
    else:
        lines = curves.errors_by_epsilon(facts, made.privacy, _around(epsilon))
        if not lines:
            raise SettingsError("there is nothing to draw for this method without --sample")
        drawn = curves.error_picture(lines, facts, None, epsilon, "this plan")
    curves.write_picture(path, drawn)


def plan_text(made: Plan) -> str:
    """A plan as TOML."""
    import tomli_w

    return tomli_w.dumps(made.to_dict())


def summary(made: Plan, schema: Schema, parties: int) -> dict[str, Any]:
    """The figures of a plan; bytes by the names that `hedgerow train` counts them under."""
    from hedgerow.coordinator.traffic import OPENING_ROUNDS, traffic

    expected = traffic(made, schema, parties)
    adaptive = made.budget.adaptive.coordinates
    return {
        "run": made.run,
        "method": made.method,
        "trust": made.privacy.trust,
        "epsilon": made.epsilon,
        "delta": made.privacy.delta,
        "mu": made.mu,
        "rounds": expected.questions,
        "opening_rounds": OPENING_ROUNDS,
        "coordinates": sum(slot.coordinates for slot in made.slots) + adaptive,
        "coordinates_per_round": max([*(slot.coordinates for slot in made.slots), adaptive]),
        "parties": parties,
        "bytes_from_party": expected.sent,
        "bytes_to_party": expected.received,
        "bytes_from_parties": parties * expected.sent,
        "bytes_to_parties": parties * expected.received,
    }


def _show(
    made: Plan, schema: Schema, parties: int, facts: Facts | None, expected: Expected | None
) -> None:
    figures = summary(made, schema, parties)
    what = ("slots", "what", "values each", "mu each", "part of mu²")
    slots = table(
        f"Plan for {schema.name!r}, method {made.method}", *what, right=what[:1] + what[2:]
    )
    for group in made.budget.groups():
        name = f"{group['name']} ({group['kind']})"
        cells = (str(group["repeat"]), name, f"{group['coordinates']:,}")
        slots.add_row(*cells, *made.budget.price_of_each(group))
    adaptive = made.budget.adaptive
    if adaptive.slots:
        part = f"{100 * adaptive.mu**2 / made.mu**2:.1f} %"
        name = f"priced during the run ({', '.join(adaptive.kinds)})"
        count, coordinates = f"at most {adaptive.slots}", f"{adaptive.coordinates:,} in all"
        slots.add_row(count, name, coordinates, f"{adaptive.mu:.4f} in all", part)
    console = results()
    console.print(slots)
    if made.method == "auto":
        _show_rule(made, schema)
        if fewer := rounds_text(made, schema):
            show(fewer)
    if needed := events_needed_text(made, schema):
        show(needed)
    for line in made.budget.notes():
        show(line)
    cost = table("Cost", "what", "value", right=("value",))
    privacy = made.privacy
    cost.add_row("epsilon", f"{made.epsilon:.4g} at delta = {privacy.delta:g}")
    cost.add_row(made.budget.mu_means, f"{made.mu:.4f}")
    cost.add_row("trust in", privacy.trust)
    for key, said in made.request.to_dict().items():
        cost.add_row({"asker": "asked for by", "ends": "last day (UTC)"}.get(key, key), said)
    if schema.weight is not None:
        cost.add_row("a row counts, and all noise grows by", f"at most {schema.max_weight:g}")
    opening = figures["opening_rounds"]
    cost.add_row("rounds, at most", f"{figures['rounds']:,} + {opening} to open")
    cost.add_row("values per round, at most", f"{figures['coordinates_per_round']:,}")
    for way, name in (("sent", "from"), ("received", "to")):
        each, all_ = figures[f"bytes_{name}_party"], figures[f"bytes_{name}_parties"]
        cost.add_row(f"{way} by a party, at most", size_text(each))
        cost.add_row(f"{way} by {parties} parties, at most", size_text(all_))
    if facts is not None and expected is not None:
        with_rows = f"with {facts.n_rows:,} rows"
        for name, value in (("a leaf weight", expected.leaf), ("a row's score", expected.row)):
            cost.add_row(f"error of {name}, {with_rows}", f"{value:.3g} {expected.unit}")
    console.print(cost)
    if facts is None and schema.label.task != "survival":
        show("Give --rows N to see what noise does to leaf weights; it stays out of the plan.")


def rounds_text(made: Plan, schema: Schema) -> str:
    """What a plan of few rounds gives up; "" where more would not be used."""
    most = made.settings.most_rounds
    unused = schema.label.task in ("survival", "counts") or made.privacy.trusted.local
    if most > FEW_ROUNDS or unused:
        return ""
    return (
        f"At most {most} rounds. Where rounds cost little, --set rounds=200 learns interactions in "
        "smaller steps: better on some large tables, no better on most."
    )


def events_needed_text(made: Plan, schema: Schema) -> str:
    """Times to an event: below how many events the model is one curve for all; "" for others."""
    from hedgerow.methods.auto import events_of_plan

    if schema.label.task != "survival":
        return ""
    needed = events_of_plan(made, schema)
    if needed is None:
        return "How many events the columns' effects need depends on the rows: --set rows_hint=N."
    return (
        f"Where a noisy count finds fewer than about {needed:,.0f} events, noise would be more "
        "than most effects of the columns, and the model is one Kaplan-Meier curve for all rows. "
        "More epsilon, fewer columns or more rows help."
    )


def rule_of(made: Plan, schema: Schema) -> list[dict[str, str]]:
    """The default method's settings with their reasons, where the number of rows is public."""
    from hedgerow.methods.auto import reasons, rule_of_plan

    rule = rule_of_plan(made, schema)
    if rule is None:
        return []
    return [{"setting": name, "value": value, "reason": why} for name, value, why in reasons(rule)]


def _show_rule(made: Plan, schema: Schema) -> None:
    lines = rule_of(made, schema)
    if not lines:
        show(
            "Bins, rounds and shares follow from a noisy row count by a public rule. To see them "
            "beforehand, give the number of rows, if it is public: --set rows_hint=N."
        )
        return
    rule = table("Settings by the public rule", "setting", "value", "reason")
    for line in lines:
        rule.add_row(line["setting"], line["value"], line["reason"])
    results().print(rule)
