"""`hedgerow plan`: what a run will ask and cost, from public facts alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, size_text, table, tell

if TYPE_CHECKING:
    from hedgerow.privacy.plan import Plan
    from hedgerow.schema import Schema


def plan(
    context: typer.Context,
    schema: options.SchemaFile,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    method: options.Method = None,
    trees: options.Trees = None,
    depth: options.Depth = None,
    learning_rate: options.LearningRate = None,
    bins: options.Bins = None,
    further: options.Further = None,
    parties: Annotated[int, typer.Option("--parties", min=1, help="How many will take part.")] = 3,
    trust: options.Trust = None,
    colluding: options.Colluding = None,
    minimum_parties: options.MinimumParties = None,
    spare: options.Spare = None,
    accounting: options.Accounting = None,
    seed: options.Seed = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the plan here (TOML).")] = None,
    json: options.Json = False,
) -> None:
    """Show what a run will ask, what it will cost and how much it will send. Asks nobody."""
    from hedgerow.cli.files import write_text
    from hedgerow.cli.planning import make_plan
    from hedgerow.schema import Schema

    public = Schema.read(schema)
    made = make_plan(public, options.given_values(context.params), parties)
    if out is not None:
        write_text(out, plan_text(made))
    if json:
        print_json({**summary(made, public, parties), "plan": made.to_dict()})
    else:
        _show(made, public, parties)
    if out is not None:
        tell(f"Plan written to {out}.")


def plan_text(made: Plan) -> str:
    """A plan as TOML."""
    import tomli_w

    return tomli_w.dumps(made.to_dict())


def summary(made: Plan, schema: Schema, parties: int) -> dict[str, Any]:
    """The numbers of a plan; bytes by the names that `hedgerow train` counts them under."""
    from hedgerow.traffic import OPENING_ROUNDS, traffic

    expected = traffic(made, schema, parties)
    return {
        "run": made.run,
        "method": made.method,
        "trust": made.privacy.trust,
        "epsilon": made.epsilon,
        "delta": made.privacy.delta,
        "mu": made.mu,
        "rounds": expected.questions,
        "opening_rounds": OPENING_ROUNDS,
        "numbers": sum(slot.coordinates for slot in made.slots),
        "numbers_per_round": max(slot.coordinates for slot in made.slots),
        "parties": parties,
        "bytes_from_party": expected.sent,
        "bytes_to_party": expected.received,
        "bytes_from_parties": expected.total_sent,
        "bytes_to_parties": expected.total_received,
    }


def _show(made: Plan, schema: Schema, parties: int) -> None:
    numbers = summary(made, schema, parties)
    what = ("slots", "what", "numbers each", "mu each", "part of mu²")
    slots = table(
        f"Plan for {schema.name!r}, method {made.method}", *what, right=what[:1] + what[2:]
    )
    for group in made.to_dict()["slot"]:
        part = group["repeat"] * group["mu"] ** 2 / made.mu**2
        name = f"{group['name']} ({group['kind']})"
        cells = (str(group["repeat"]), name, f"{group['coordinates']:,}", f"{group['mu']:.4f}")
        slots.add_row(*cells, f"{100 * part:.1f} %")
    console = results()
    console.print(slots)
    cost = table("Cost", "what", "value", right=("value",))
    privacy = made.privacy
    cost.add_row("epsilon", f"{made.epsilon:.4g} at delta = {privacy.delta:g}")
    cost.add_row("mu (Gaussian privacy parameter)", f"{made.mu:.4f}")
    cost.add_row("trust in", privacy.trust)
    opening = numbers["opening_rounds"]
    cost.add_row("rounds, at most", f"{numbers['rounds']:,} + {opening} to open")
    cost.add_row("numbers per round, at most", f"{numbers['numbers_per_round']:,}")
    for way, name in (("sent", "from"), ("received", "to")):
        each, all_ = numbers[f"bytes_{name}_party"], numbers[f"bytes_{name}_parties"]
        cost.add_row(f"{way} by a party, at most", size_text(each))
        cost.add_row(f"{way} by {parties} parties, at most", size_text(all_))
    console.print(cost)
    show("Nothing was asked and nothing was spent.")
