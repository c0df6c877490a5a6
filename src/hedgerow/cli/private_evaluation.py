"""The private part of `hedgerow evaluate`: plan, ledger, parties, and the result for people."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.screen import decimals, print_json, results, show, table, tell
from hedgerow.cli.train import check_parties, facts_of, nothing_spent, plan_file, record_budget
from hedgerow.cli.trained_on import SENTENCES, check_part, rows_are, write_note
from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.cli.options import BudgetOptions, CsvOptions, LedgerOptions
    from hedgerow.cli.parties import Parties
    from hedgerow.evaluation import Evaluation, Measure
    from hedgerow.model.ensemble import Ensemble
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.ledger.ledger import Ledger

MOST_SHOWN = 8  # classes of a confusion matrix on a screen
Given = dict[str, Any]


def run_and_show(
    model: Path,
    parties: Parties,
    given: Given,
    out: Path | None,
    ledger: LedgerOptions,
    budget: BudgetOptions,
    csv: CsvOptions,
    json: bool,
) -> None:
    """Evaluate, write the result, and print it."""
    from hedgerow.model.ensemble import Ensemble

    with nothing_spent():
        trained = Ensemble.load(model)
        written = csv.applied(trained.schema.csv)
        trained = replace(trained, schema=replace(trained.schema, csv=written))
        out = out or model.with_name(model.name + ".evaluation.json")
        old = model.with_name(model.name + ".ledger")
    with closing(parties):
        evaluation, facts = _run(trained, parties, given, out, ledger, old, budget)
    facts["rows_are"] = rows_are(model, parties.tables, parties.part)
    if json:
        print_json({**evaluation.to_dict(), **facts})
        return
    _show(evaluation, facts, str(model))
    tell(f"Result written to {out}.")


def _run(
    model: Ensemble,
    parties: Parties,
    given: Given,
    out: Path,
    ledger: LedgerOptions,
    old: Path,
    budget: BudgetOptions,
) -> tuple[Evaluation, Given]:
    """Everything that can fail is tried before the first charge."""
    from hedgerow.cli.data_sets import open_ledger
    from hedgerow.cli.files import check_writable

    with nothing_spent():
        beside = out.with_name(out.name + ".plan.toml")
        given = parties.settled(model.schema, given)
        plan = _settled(model, given, len(parties.names), beside)
        check_part(parties.part, plan)
        parties.check(model.schema)
        check_writable(out)
        opened = open_ledger(ledger, parties, old)
    with opened, plan_file(beside, plan, opened, out):
        with nothing_spent():
            check_parties(opened, plan, parties.names, beside, resume=False)
            write_note(out, parties, plan, opened)
            record_budget(opened, budget, plan, parties.owners)
        evaluation, facts = _ask(model, parties, plan, opened, out)
    return evaluation, {**facts, "plan": str(beside), "out": str(out)}


def _settled(model: Ensemble, given: Given, n_parties: int, beside: Path) -> Plan:
    """The plan beside the result if there is one, so that the same command gives the same."""
    from hedgerow.cli.given import differences, request_of
    from hedgerow.evaluation import evaluation_plan
    from hedgerow.methods.registry import check_party_count
    from hedgerow.model.trust import usual_trust
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.settings import privacy_from

    if not beside.exists():
        usual_delta = model.statement.delta or 1e-6
        request = request_of(given := dict(given))
        privacy = privacy_from({"delta": usual_delta, "trust": usual_trust(n_parties), **given})
        check_party_count(privacy, n_parties)
        return replace(evaluation_plan(model, privacy), request=request)
    plan = Plan.read(beside)
    differing = differences(plan, given)
    if not plan.measures or plan.settings.model != model.hash:
        named = plan.settings.model[:12]
        differing = [f"it is of the model {named}, not of {model.hash[:12]}"]
    if differing:
        raise PlanError(
            f"{beside} belongs to an evaluation that was planned differently: "
            f"{'; '.join(differing)}. Nothing was asked. Choose another --out for a new one, or "
            "repeat the first command to see its result again."
        )
    check_party_count(plan.privacy, n_parties)
    return plan


def _ask(
    model: Ensemble, parties: Parties, plan: Plan, ledger: Ledger, out: Path
) -> tuple[Evaluation, Given]:
    from hedgerow.cli.files import write_text
    from hedgerow.cli.progress import watching
    from hedgerow.coordinator.gate import Gate
    from hedgerow.evaluation import evaluate

    with (
        parties.federation(model.schema, plan, ledger) as federation,
        watching(str(ledger.path)) as watch,
    ):
        gate = Gate(federation, plan, ledger, observe=watch.observe, start=model)
        evaluation = evaluate(gate, model)
        write_text(out, evaluation.to_json())
    facts = {
        "ledger": str(ledger.path),
        **facts_of(plan, ledger, federation),
        "releases_asked": watch.asked,
        "releases_replayed": watch.replayed,
    }
    return evaluation, facts


def _show(found: Evaluation, facts: Given, model: str) -> None:
    from hedgerow.evaluation.result import TITLES

    show(found.words())
    shown = table(
        f"{model} ({found.model[:12]}), privately",
        "what", "value", "noise", "sampling", "95 % interval",
        right=("value", "noise", "sampling", "95 % interval"),
    )  # fmt: skip
    for one in found.findings.measures:
        shown.add_row(TITLES.get(one.name, one.name), *_cells(one))
    results().print(shown)
    _show_confusion(found)
    for note in found.findings.notes:
        show(note, style="yellow")
    again = " (all of it replayed: nothing was spent now)" if not facts["releases_asked"] else ""
    show(SENTENCES[facts["rows_are"]])
    runs = "1 run" if facts["ledger_runs"] == 1 else f"{facts['ledger_runs']} runs"
    show(
        f"Spent: epsilon = {facts['epsilon']:.4g} at delta = {facts['delta']:g}{again}. The ledger "
        f"{facts['ledger']} has {runs}: epsilon = {facts['ledger_epsilon']:.4g} at delta = "
        f"{facts['ledger_delta']:g}."
    )


def _cells(one: Measure) -> tuple[str, ...]:
    largest = max(abs(one.value or 0.0), one.noise_error or 0.0)
    places = 0 if one.name == "rows" else decimals(largest)

    def text(value: float | None) -> str:
        return "" if value is None else f"{value:,.{places}f}"

    if one.value is None:
        return ("lost in noise", "", "", "")
    if one.interval is None:  # a test has none
        return f"{one.value:.3g}", "", "", ""
    between = " to ".join(text(end) for end in one.interval)
    return text(one.value), text(one.noise_error), text(one.sampling_error), between


def _show_confusion(found: Evaluation) -> None:
    confusion = found.findings.confusion
    if confusion is None:
        return
    if len(confusion.classes) > MOST_SHOWN:
        show(f"The confusion of {len(confusion.classes)} classes is in the file.")
        return
    names = [str(one) for one in confusion.classes]
    title = f"Rows by true and predicted class (noise {confusion.noise_error:,.0f})"
    shown = table(
        title, "true", *(f"as {name}" for name in names), right=tuple(f"as {n}" for n in names)
    )
    for name, row in zip(names, confusion.counts, strict=True):
        shown.add_row(name, *(f"{count:,.0f}" for count in row))
    results().print(shown)
