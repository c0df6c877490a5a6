"""`hedgerow train`: a model over several parties, in this process or at other sites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.given import given_values
from hedgerow.cli.parties import Parties, parties_of
from hedgerow.cli.screen import print_json, results, show, size_text, table, tell
from hedgerow.errors import HedgerowError, PlanError, SettingsError

if TYPE_CHECKING:
    from hedgerow.coordinator.federation import Federation
    from hedgerow.data.schema import Schema
    from hedgerow.model.ensemble import Ensemble
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.ledger.ledger import Ledger

PlanIn = Annotated[
    Path | None,
    typer.Option(
        "--plan", help="A plan file; by default one is made.", rich_help_panel=options.PROMISE
    ),
]
WarmStart = Annotated[
    Path | None,
    typer.Option(
        "--warm-start-from",
        metavar="MODEL",
        help="Build on this model, made from public rows or from rows already paid for.",
        rich_help_panel=options.METHOD,
    ),
]
StartIsPublic = Annotated[
    bool,
    typer.Option(
        "--start-is-public",
        help="Declare that it was made from public rows.",
        rich_help_panel=options.METHOD,
    ),
]
Holdout = Annotated[
    float | None,
    typer.Option(
        "--holdout",
        metavar="SHARE",
        help="Keep this share of the rows out of training, to `evaluate` on; 0.2 for a fifth.",
        rich_help_panel=options.TABLES,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Only go on with a run; refuse to start a new one.",
        rich_help_panel=options.OUTPUT,
    ),
]


def train(
    *,
    schema: options.SchemaFile,
    data: options.DataFiles = None,
    promise: options.PromiseOptions,
    budget: options.BudgetOptions,
    ledger: options.LedgerOptions,
    plan: PlanIn = None,
    request: options.RequestOptions,
    settings: options.SeededMethodOptions,
    warm_start_from: WarmStart = None,
    start_is_public: StartIsPublic = False,
    engine: options.EngineOptions,
    resume: Resume = False,
    holdout: Holdout = None,
    out: options.ModelOut,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Train a model. Running the same command again resumes a run that was stopped."""
    from hedgerow.cli.trained_on import part_for_training

    with nothing_spent():
        given = given_values(promise, settings, request)
        parties = parties_of(engine, data, part_for_training(holdout))
        start = _start_model(warm_start_from, start_is_public, given)
    with closing(parties):
        model, facts = _run(schema, parties, out, given, plan, ledger, budget, resume, start)
    if json:
        print_json({**facts, "statement": model.statement.to_dict()})
    else:
        _show(model, facts)


def _run(
    schema: Path,
    parties: Parties,
    out: Path,
    given: dict[str, Any],
    plan: Path | None,
    ledger: options.LedgerOptions,
    budget: options.BudgetOptions,
    resume: bool,
    start: Ensemble | None,
) -> tuple[Ensemble, dict[str, Any]]:
    """Everything that can fail is tried before the first charge."""
    from hedgerow.cli.data_sets import ledger_place, open_ledger
    from hedgerow.cli.files import check_writable
    from hedgerow.cli.given import settle_plan, tell_cautions
    from hedgerow.cli.trained_on import check_part, write_note
    from hedgerow.coordinator.gate import start_trees
    from hedgerow.data.schema import Schema

    with nothing_spent():
        beside = beside_of(out, ".plan.toml")
        public = Schema.read(schema)
        if resume:
            _check_exists(beside, ledger_place(ledger, parties))
        given = parties.settled(public, given)
        agreed = settle_plan(public, given, len(parties.names), plan, beside)
        tell_cautions(agreed, public)
        check_part(parties.part, agreed)
        start_trees(start, agreed, public)  # refuses a model that the plan does not name
        parties.check(public)
        check_writable(out)
        opened = open_ledger(ledger, parties, beside_of(out, ".ledger"))
    with opened, plan_file(beside, agreed, opened, out):
        with nothing_spent():
            check_parties(opened, agreed, parties.names, beside, resume)
            write_note(out, parties, agreed, opened)
            record_budget(opened, budget, agreed, parties.owners)
        model, facts = _grow(public, parties, agreed, opened, out, start)
    return model, {**facts, "plan": str(beside)}


def _start_model(path: Path | None, public: bool, given: dict[str, Any]) -> Ensemble | None:
    """The model that a run builds on; the plan names it by its hash and what it promises."""
    from hedgerow.model.ensemble import Ensemble

    if {"warm_start", "warm_start_says"} & set(given):
        raise SettingsError("give the model itself: --warm-start-from, not --set warm_start")
    if path is None:
        return None
    start = Ensemble.load(path)
    given["warm_start"] = start.hash
    given["warm_start_says"] = "public" if public else start.statement.promise()
    return start


@contextmanager
def nothing_spent() -> Iterator[None]:
    """An error in this block says that it came before any charge."""
    try:
        yield
    except HedgerowError as error:
        text = str(error)
        if "othing was" not in text:
            error.args = (f"{text.rstrip('.')}. Nothing was asked and nothing was spent.",)
        raise


@contextmanager
def plan_file(beside: Path, plan: Plan, ledger: Ledger, result: Path) -> Iterator[None]:
    """The plan lies beside the model before it is reserved.

    One that waits for people at the parties stays, so that the same command runs what they were
    shown; one that they do not want, or that failed before anybody kept it, does not. While the
    block lasts no other process can drive the run: two would pay for each other's slots.
    """
    from hedgerow.cli.data_sets import check_not_forgotten
    from hedgerow.cli.files import held, write_text
    from hedgerow.cli.plan import plan_text

    fresh = not beside.exists()
    if fresh:
        write_text(beside, plan_text(plan))
    else:
        check_not_forgotten(ledger, plan, beside, result)
    with held(beside, f"run {plan.run}"):
        try:
            yield
        except HedgerowError as error:
            if not ledger.lines(kind="reserve", run=plan.run) and _is_over(error, fresh):
                beside.unlink(missing_ok=True)
            raise


def _is_over(error: HedgerowError, fresh: bool) -> bool:
    """Whether a plan that was never reserved has no use any more."""
    from hedgerow.coordinator.refused import RefusedBy

    if not isinstance(error, RefusedBy):
        return fresh
    return not error.waits and (fresh or error.is_final)


def beside_of(out: Path, suffix: str) -> Path:
    if out.is_dir():
        raise SettingsError(f"{out} is a folder; name a file for the model in it")
    return out.with_name(out.name + suffix)


def _check_exists(beside: Path, stored_in: Path) -> None:
    """What --resume needs: the plan and the ledger of a run that was started."""
    for what, path in (("plan", beside), ("ledger", stored_in)):
        if not path.is_file():
            raise PlanError(
                f"there is no run to resume: no {what} at {path}. Nothing was asked. Give the "
                "--out and --ledger of the run, or leave out --resume to start a new one."
            )


def check_parties(
    ledger: Ledger, plan: Plan, names: tuple[str, ...], beside: Path, resume: bool
) -> None:
    """A resumed run has the parties it was started with."""
    from hedgerow.privacy.ledger.store import COORDINATOR

    owners = {line.owner for line in ledger.lines(kind="reserve", run=plan.run)}
    if resume and not owners:
        raise PlanError(
            f"there is no run to resume: {ledger.path} has 0 lines of run {plan.run}, which "
            f"{beside} plans. Nothing was asked. Leave out --resume to start it."
        )
    started = sorted(owners - {COORDINATOR})
    if started and started != sorted(names):
        raise PlanError(
            f"run {plan.run} of {beside} was started by the parties {', '.join(started)}, and now "
            f"there are {', '.join(sorted(names))}. Nothing was asked. Give the same tables, or "
            "choose another --out for a new run."
        )


def record_budget(
    ledger: Ledger, budget: options.BudgetOptions, plan: Plan, parties: Iterable[str]
) -> None:
    """One ceiling for everybody who writes to this ledger."""
    from hedgerow.privacy.ledger.spending import Budget, set_budget
    from hedgerow.privacy.ledger.store import COORDINATOR
    from hedgerow.privacy.settings import Privacy

    epsilon, delta = budget.budget_epsilon, budget.budget_delta
    if epsilon is None:
        for flag, value in (("delta", delta), ("pure", budget.budget_pure)):
            if value is not None:
                raise SettingsError(f"--budget-{flag} needs --budget-epsilon. Nothing was asked.")
        return
    delta = plan.privacy.delta if delta is None else delta
    accounting = "exact" if delta else "pure"
    ceiling = Privacy(epsilon, delta, accounting=accounting)  # checks ranges
    with ledger.transaction():
        for owner in (COORDINATOR, *sorted(parties)):
            set_budget(ledger, Budget(ceiling.epsilon, ceiling.delta, budget.budget_pure), owner)


def _grow(
    schema: Schema,
    parties: Parties,
    plan: Plan,
    ledger: Ledger,
    out: Path,
    start: Ensemble | None,
) -> tuple[Ensemble, dict[str, Any]]:
    from hedgerow.cli.progress import watching
    from hedgerow.coordinator.gate import Gate
    from hedgerow.methods.registry import method_named

    with (
        parties.federation(schema, plan, ledger) as federation,
        watching(str(ledger.path)) as watch,
    ):
        gate = Gate(federation, plan, ledger, observe=watch.observe, start=start)
        model = method_named(plan.method).grow(gate)
        model.save(out)
    facts = {
        "model": str(out),
        "holdout": parties.part.share,
        "ledger": str(ledger.path),
        **facts_of(plan, ledger, federation),
        "releases_asked": watch.asked,
        "releases_replayed": watch.replayed,
        "slots_lost": gate.lost,
        "attendance": gate.attendance,
    }
    return model, facts


def facts_of(plan: Plan, ledger: Ledger, federation: Federation) -> dict[str, Any]:
    from hedgerow.privacy.ledger.spending import budget_of, counts_as_gaussians, spending

    total, delta = spending(ledger), plan.privacy.delta
    by_mu = counts_as_gaussians(budget_of(ledger))
    if delta == 0 and total.gaussian:  # other runs of this ledger have one
        delta = 1e-6
    return {
        "run": plan.run,
        "method": plan.method,
        "parties": list(federation.names),
        "epsilon": plan.epsilon,
        "delta": plan.privacy.delta,
        "mu": plan.mu,
        "rounds": federation.rounds,
        "bytes_to_parties": federation.bytes_to_parties,
        "bytes_from_parties": federation.bytes_from_parties,
        "ledger_epsilon": total.epsilon(delta, as_gaussians=by_mu),
        "ledger_delta": delta,
        "ledger_runs": total.runs,
    }


def _show(model: Ensemble, facts: dict[str, Any]) -> None:
    from hedgerow.methods.private_tree import caution_of

    show(model.statement.words())
    if facts["method"] == "private-tree" and (told := caution_of(model)):
        tell(f"Look: {told}")
    shown = table("Run " + facts["run"], "what", "value", right=("value",))
    delta, n_parties = facts["delta"], len(facts["parties"])
    shown.add_row("epsilon spent", f"{facts['epsilon']:.4g} at delta = {delta:g}")
    runs = "1 run" if facts["ledger_runs"] == 1 else f"{facts['ledger_runs']} runs"
    other = f" at delta = {facts['ledger_delta']:g}" if facts["ledger_delta"] != delta else ""
    shown.add_row(f"epsilon of the ledger ({runs})", f"{facts['ledger_epsilon']:.4g}{other}")
    shown.add_row("trees", str(len(model.trees)))
    shown.add_row("rounds asked now", str(facts["rounds"]))
    if facts["releases_replayed"]:
        shown.add_row("releases taken from the ledger", str(facts["releases_replayed"]))
    if facts["slots_lost"]:
        shown.add_row("slots charged and lost in a crash", str(facts["slots_lost"]))
    for over in facts["attendance"].get("over", ()):
        names = over["parties"]
        n_releases, everyone = over["releases"], len(names) == n_parties
        who = "all parties" if everyone else ", ".join(names)
        shown.add_row(f"releases over {len(names)} of {n_parties} parties", f"{n_releases} ({who})")
    for loss in facts["attendance"].get("lost", ()):
        shown.add_row(f"{loss['party']} fell out at slot {loss['slot']}", loss["why"])
    for name, why in facts["attendance"].get("absent", {}).items():
        shown.add_row(f"{name} was absent at the end", why)
    if not model.statement.single_owner:
        shown.add_row("sent by a party", size_text(facts["bytes_from_parties"] / n_parties))
        shown.add_row("received by a party", size_text(facts["bytes_to_parties"] / n_parties))
    results().print(shown)
    tell(f"Model written to {facts['model']}. What was spent is on the ledger {facts['ledger']}.")
    if facts["holdout"]:
        tell(
            f"Held out of training: a share of {facts['holdout']:g} of the rows of every table. "
            f"`hedgerow evaluate {facts['model']} --data ... --holdout` measures on them alone."
        )
