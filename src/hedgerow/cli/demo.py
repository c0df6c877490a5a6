"""`hedgerow demo`: three made-up hospitals train one model, and what that is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, show, size_text, table, tell

if TYPE_CHECKING:
    from hedgerow.cli.demo_run import Outcome, Score


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for everything it makes.")] = Path(
        "demo-output"
    ),
    epsilon: Annotated[
        float, typer.Option("--epsilon", envvar="HEDGEROW_EPSILON", help="The promise.")
    ] = 1.0,
    seed: Annotated[
        int, typer.Option("--seed", help="Seeds the patients and the trees, never the noise.")
    ] = 7,
    repeat_visits: Annotated[
        bool,
        typer.Option(
            "--repeat-visits", help="Patients come several times; what is protected is a patient."
        ),
    ] = False,
    notebook: Annotated[
        Path | None,
        typer.Option(
            "--notebook", help="Write the demonstration as a notebook there, and train nothing."
        ),
    ] = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Train over three made-up hospitals and compare with the alternatives. Takes seconds."""
    from hedgerow.cli.files import check_writable
    from hedgerow.errors import HedgerowError

    if notebook is not None:
        _write_notebook(notebook)
        return

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HedgerowError(f"cannot make the folder {out}: {error.strerror}") from error
    check_writable(out / "model.hedge")
    from hedgerow.cli.demo_run import run_demo
    from hedgerow.kernels.compiling import say_when_compiling

    say_when_compiling(lambda text: tell(f"- {text}", style="dim"))

    result = run_demo(out, epsilon, seed, lambda text: tell(f"- {text}"), repeat_visits)
    if json:
        print_json(result.to_dict())
    else:
        _show(result)
    if result.picture is None:
        advice = "No picture: matplotlib is missing. Install it with: pip install 'hedgerow[plots]'"
        tell(advice)


def _write_notebook(path: Path) -> None:
    """A file that exists may hold somebody's work, so it stays as it is."""
    from hedgerow.cli.demo_notebook import notebook_text
    from hedgerow.cli.files import write_text
    from hedgerow.errors import SettingsError

    if path.suffix != ".ipynb":
        raise SettingsError(f"{path} is no name of a notebook; name a file that ends in .ipynb")
    if path.exists():
        raise SettingsError(f"{path} exists and was not changed; name another file")
    write_text(path, notebook_text())
    tell(f"Notebook written to {path}. Open it with: jupyter lab {path}")


def _show(found: Outcome) -> None:
    console = results()
    console.print(_comparison(found))
    console.print(_own_patients(found))
    cost = table("What the joint model cost", "what", "value", right=("value",))
    if found.unit == "person":
        cost.add_row("visits that count", f"at most {found.at_most} of a patient in each hospital")
    cost.add_row("epsilon spent", f"{found.epsilon:g} at delta = {found.delta:g}")
    if found.ledger_runs > 1:
        runs = f"epsilon of all {found.ledger_runs} runs on these patients"
        cost.add_row(runs, f"{found.ledger_epsilon:.3g}")
    cost.add_row("rounds", str(found.rounds))
    cost.add_row("sent by each hospital", size_text(found.bytes_from_party))
    cost.add_row("received by each hospital", size_text(found.bytes_to_party))
    console.print(cost)
    show("What nobody learned", style="bold")
    for line in _nobody_learned(found):
        show(f"- {line}")
    show("\nThe model's statement", style="bold")
    show(found.words)
    show(f"\nEverything is in {found.folder}", style="bold")
    picture = ", and the picture comparison.png" if found.picture else ""
    show(
        "model.hedge, its plan and ledger, schema.toml, statement.txt, results.json, the tables"
        f"{picture}. Go on with, for example:"
    )
    show(f"  hedgerow ledger show {found.folder}/model.hedge.ledger")
    show(f"  hedgerow evaluate {found.folder}/model.hedge --data {found.folder}/test.csv")


def _comparison(found: Outcome) -> object:
    numbers = (_rows(found), "epsilon", "AUC", "log loss")
    shown = table(
        "Who comes back within 30 days? Held-out patients",
        "model",
        *numbers,
        right=numbers,
    )
    for score in found.scores:
        epsilon = "none" if score.epsilon is None else f"{score.epsilon:g}"
        cells = (f"{score.n_rows:,}", epsilon, f"{score.auc:.3f}", f"{score.log_loss:.3f}")
        style = "bold green" if score.kind == "together" else None
        shown.add_row(_name(score), *cells, style=style)
    return shown


def _own_patients(found: Outcome) -> object:
    numbers = ("alone", "together", "gain")
    shown = table("AUC on a hospital's own patients", "hospital", *numbers, right=numbers)
    together = next(score for score in found.scores if score.kind == "together")
    for score in found.scores:
        if score.kind == "alone":
            before, after = score.own[score.name], together.own[score.name]
            shown.add_row(score.name, f"{before:.3f}", f"{after:.3f}", f"{after - before:+.3f}")
    return shown


def _rows(found: Outcome) -> str:
    return "visits" if found.unit == "person" else "patients"


def _name(score: Score) -> str:
    if score.kind == "alone":
        return f"{score.name} alone, private"
    return "all three together, private" if score.kind == "together" else "pooled, NOT private"


def _nobody_learned(found: Outcome) -> tuple[str, ...]:
    return (
        "No hospital showed a row to anyone, nor a count, a range or a rate of its own.",
        "The coordinator saw masked numbers. Their sums carry the noise of all three hospitals, so "
        "nobody ever saw an exact sum, not even over all patients.",
        f"Whether one particular patient was in the tables stays uncertain to everyone, within "
        f"epsilon = {found.epsilon:g}, even to the coordinator together with one of the hospitals.",
        "This demonstration ran in one process, which of course saw everything; keys, masks, "
        "messages and charges were the real ones.",
    )
