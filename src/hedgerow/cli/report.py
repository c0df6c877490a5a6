"""`hedgerow report`: one page about a model, to be read offline or printed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, tell

Out = Annotated[Path, typer.Option("--out", help="Where the page goes (HTML).")]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="The ledger; by default the one that has the model's run."),
]
EvaluationFile = Annotated[
    Path | None,
    typer.Option(
        "--evaluation",
        help="What `hedgerow evaluate --epsilon` wrote; default: MODEL.evaluation.json.",
    ),
]
AuditFile = Annotated[
    Path | None,
    typer.Option("--audit", help="What `hedgerow audit --out` wrote; default: MODEL.audit.json."),
]


def report(
    model: options.ModelFile,
    out: Out = Path("report.html"),
    ledger: LedgerFile = None,
    evaluation: EvaluationFile = None,
    audit: AuditFile = None,
    json: options.Json = False,
) -> None:
    """Write one self-contained page: promise, budget, shapes, trees. Costs no budget."""
    from hedgerow.audit.result import AuditResult
    from hedgerow.cli.data_sets import ledger_of_run
    from hedgerow.cli.files import write_text
    from hedgerow.evaluation.result import Evaluation
    from hedgerow.inspection.explain import explain
    from hedgerow.inspection.report.audited import check_audit
    from hedgerow.inspection.report.facts import check_evaluation, facts_of
    from hedgerow.inspection.report.page import page_of
    from hedgerow.model.ensemble import Ensemble
    from hedgerow.privacy.ledger.ledger import Ledger

    loaded = Ensemble.load(model)
    chosen, stored, audited = (
        given or (beside if (beside := model.with_name(model.name + suffix)).is_file() else None)
        for given, suffix in (
            (ledger, ".ledger"), (evaluation, ".evaluation.json"), (audit, ".audit.json")
        )
    )  # fmt: skip
    chosen = chosen or ledger_of_run(str(loaded.record.get("run", "")))
    measured = None if stored is None else Evaluation.load(stored)
    if measured is not None and evaluation is None and measured.model != loaded.hash:
        tell(f"{stored} is of another model and was left out.", style="yellow")
        measured = None
    if measured is not None:
        check_evaluation(loaded, measured)
    attacked = None if audited is None else AuditResult.load(audited)
    if attacked is not None:
        check_audit(loaded, attacked)
    with ExitStack() as stack:
        opened = stack.enter_context(Ledger.open(chosen, create=False)) if chosen else None
        facts = facts_of(loaded, opened)
    explained = explain(loaded)
    write_text(out, page_of(explained, facts, measured, attacked))
    if json:
        print_json({"report": str(out), "facts": facts.to_dict()})
        return
    tell(f"Report written to {out}.")
