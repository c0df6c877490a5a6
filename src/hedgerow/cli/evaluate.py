"""`hedgerow evaluate`: how good a model is; private with an epsilon, exact without one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.given import given_values
from hedgerow.cli.parties import parties_of, party_sources
from hedgerow.cli.screen import decimals, print_json, results, show, table
from hedgerow.cli.train import nothing_spent
from hedgerow.data.holdout import WHOLE, Part
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hedgerow.data.schema import Label
    from hedgerow.model.ensemble import Ensemble

_TITLES = {
    "auc": "AUC", "rmse": "RMSE", "mae": "mean absolute error",
    "deviance": "mean deviance", "d2": "share of the deviance explained",
    "bias": "mean error (label less prediction)", "pinball": "mean pinball loss",
    "coverage": "share of labels not above the prediction",
    "events": "events up to the horizon", "integrated_brier": "integrated Brier score",
}  # fmt: skip
WARNING = (
    "These numbers are computed from exact rows and are NOT private: the model's guarantee does "
    "not cover them. Treat them like the rows themselves. With --epsilon the parties answer "
    "privately instead."
)
# Not from the environment: whoever has set an epsilon for training has not paid for this.
Epsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon",
        help="Evaluate privately, and spend so much. Without: exact.",
        rich_help_panel=options.PROMISE,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="Its slack; by default that of the model, or 1e-6.",
        rich_help_panel=options.PROMISE,
    ),
]
ResultOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="With --epsilon: where the result goes (JSON); else MODEL.evaluation.json.",
        rich_help_panel=options.OUTPUT,
    ),
]
HeldOut = Annotated[
    bool,
    typer.Option(
        "--holdout",
        help="Only on rows that training held out; give the tables it was trained on.",
        rich_help_panel=options.TABLES,
    ),
]


def evaluate(
    *,
    model: options.ModelFile,
    data: options.DataFiles = None,
    csv: options.CsvOptions,
    holdout: HeldOut = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    trust: options.TrustOptions,
    request: options.RequestOptions,
    budget: options.BudgetOptions,
    ledger: options.LedgerOptions,
    engine: options.EngineOptions,
    out: ResultOut = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Measure a model on tables with labels: privately with --epsilon, else NOT private.

    Running the same command again gives the stored result, and spends nothing.
    """
    from hedgerow.cli.trained_on import held_out_part

    part = held_out_part(model) if holdout else WHOLE
    if epsilon is None:
        private = {"out": out, **vars(ledger), "site": engine.site, "delta": delta}
        _refuse_without_epsilon(
            {**private, **vars(budget), **vars(request), "scheduler": engine.scheduler}, engine
        )
        _exact(model, data, csv, part, json)
        return
    from hedgerow.cli.private_evaluation import run_and_show

    with nothing_spent():
        parties = parties_of(engine, data, part)
        given = given_values(options.EpsilonOptions(epsilon, delta), trust, request)
    run_and_show(model, parties, given, out, ledger, budget, csv, json)


def _refuse_without_epsilon(private: dict[str, Any], engine: options.EngineOptions) -> None:
    """What only a private evaluation uses would be ignored in silence."""
    for name, value in private.items():
        if value is not None:
            flag = "--" + name.replace("_", "-")
            raise SettingsError(
                f"{flag} belongs to a private evaluation, and there is no --epsilon. Nothing was "
                "asked and nothing was spent. Give --epsilon, or leave it out for exact numbers."
            )
    if engine.engine != "local" or engine.site is not None:
        raise SettingsError(
            "exact numbers need the rows here, and parties at other sites or on a cluster have "
            "them elsewhere. Nothing was asked and nothing was spent. Give --epsilon."
        )


def _exact(
    model: Path, data: Sequence[str] | None, csv: options.CsvOptions, part: Part, json: bool
) -> None:
    from hedgerow.cli.trained_on import SENTENCES, rows_are

    if not data:
        raise SettingsError("no table: give --data, once for each party")
    sources = list(party_sources(data).values())
    measured = measure(model, sources, csv, part)
    seen = rows_are(model, sources, part)
    if json:
        print_json({**measured, "private": False, "warning": WARNING, "rows_are": seen})
        return
    names = ", ".join(str(path) for path in sources)
    shown = table(f"{model} on {names}", "what", "value", right=("value",))
    shown.add_row("rows", f"{measured['rows']:,}")
    for name, value in measured.items():
        if name == "rows":
            continue
        text = _undefined(name) if value is None else f"{value:,.{decimals(value)}f}"
        text = f"{value:,}" if isinstance(value, int) else text
        shown.add_row(_TITLES.get(name, name.replace("_", " ")), text)
    results().print(shown)
    show(SENTENCES[seen])
    show(WARNING, style="yellow")


def _undefined(name: str) -> str:
    why = "no pair of rows to compare" if name == "concordance" else "one class only"
    return f"undefined: {why}"


def measure(
    model: Path, data: Sequence[Path], csv: options.CsvOptions | None = None, part: Part = WHOLE
) -> dict[str, Any]:
    """Exact measures of a model on tables together: AUC for binary labels, errors for regression.

    Labels outside of their bounds count as the nearer bound, as they do in training.
    """
    import numpy as np

    from hedgerow.model.ensemble import Ensemble

    trained, csv = Ensemble.load(model), csv or options.CsvOptions()
    if trained.schema.label.task == "survival":
        return _survival_measures(trained, data, csv, part)
    label, seen = trained.schema.label, [_seen(trained, path, csv, part) for path in data]
    target = np.concatenate([true for true, _ in seen])
    predicted = np.concatenate([made for _, made in seen])  # (row, class), or (row,) for regression
    if label.task == "counts":
        return {"rows": len(target), **_count_measures(label, target, predicted)}
    if label.lower is not None and label.upper is not None:
        errors = predicted - (label.lower + (label.upper - label.lower) * target)
        return {
            "rows": len(target),
            "rmse": float(np.sqrt(np.mean(errors**2))),
            "mae": float(np.mean(np.abs(errors))),
            **_quantile_measures(label, errors),
        }
    return {"rows": len(target), **_class_measures(target.astype(np.int64), predicted)}


def _seen(
    trained: Ensemble, path: Path, csv: options.CsvOptions, part: Part
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Labels and predictions of one table."""
    from hedgerow.data.readers import stream_of
    from hedgerow.data.tables import labels_of, rows_of
    from hedgerow.errors import TableError

    label = trained.schema.label
    stream = stream_of(path, str(path), csv.applied(trained.schema.csv))
    for name in label.columns:
        n_label_columns = list(stream.names or ()).count(name)
        if n_label_columns != 1:
            raise TableError(
                f"{path} needs the label column {name!r} once to be measured on, and has it "
                f"{n_label_columns} times; add it, or use `hedgerow predict` for rows without "
                "labels."
            )
    labels = labels_of(stream, label)
    if not labels.size:
        raise TableError(
            f"{path} has 0 rows, so there is nothing to measure; give a table with rows."
        )
    predicted = trained.predict(stream)
    if not part.share:
        return labels, predicted
    mask = part.mask(rows_of(stream, trained.schema), trained.schema)
    if not mask.any():
        raise TableError(f"no row of {path} was held out, so there is nothing to measure.")
    return labels[mask], predicted[mask]


def _survival_measures(
    trained: Ensemble, data: Sequence[Path], csv: options.CsvOptions, part: Part
) -> dict[str, Any]:
    """Concordance and integrated Brier score, of times as they are written in the tables."""
    import numpy as np

    from hedgerow.data.readers import stream_of
    from hedgerow.data.tables import outcomes_of, rows_of
    from hedgerow.evaluation.survival import exact_measures

    schema, seen = trained.schema, []
    for path in data:
        cells, survival = _seen(trained, path, csv, part)
        stream = stream_of(path, str(path), csv.applied(schema.csv))
        times, events = outcomes_of(stream, schema.label)
        if part.share:
            mask = part.mask(rows_of(stream, schema), schema)
            times, events = times[mask], events[mask]
        seen.append((survival, times, events > 0.5, cells))
    survival, times, happened, cells = (np.concatenate(of) for of in zip(*seen, strict=True))
    measured = exact_measures(survival, times, happened, cells, schema.label.cuts)
    return {"rows": len(times), "events": int(np.sum(cells % 2 == 1)), **measured}


def _count_measures(
    label: Label, target: NDArray[np.float64], rates: NDArray[np.float64]
) -> dict[str, float]:
    """Deviance and errors of counts, of which the model expects the rate times the exposure."""
    from hedgerow.evaluation.counts import exact_measures
    from hedgerow.kernels import count_and_exposure

    counts, exposure = count_and_exposure(target)
    return exact_measures(counts, rates * exposure * (label.max_exposure or 1.0), exposure)


def _quantile_measures(label: Label, errors: NDArray[np.float64]) -> dict[str, float]:
    """Coverage and pinball loss, of errors that are prediction less label."""
    import numpy as np

    if label.quantile is None:
        return {}
    above, level = errors >= 0, label.quantile
    return {
        "coverage": float(np.mean(above)),
        "pinball": float(np.mean(np.where(above, (1 - level) * errors, -level * errors))),
    }


def _class_measures(
    target: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> dict[str, float | None]:
    import numpy as np
    from sklearn.metrics import roc_auc_score

    true = np.maximum(probabilities[np.arange(len(target)), target], 1e-15)
    measured: dict[str, float | None] = {}
    if probabilities.shape[1] == 2:
        both = len(np.unique(target)) == 2
        measured["auc"] = float(roc_auc_score(target, probabilities[:, 1])) if both else None
    measured["accuracy"] = float(np.mean(probabilities.argmax(axis=1) == target))
    measured["log_loss"] = float(-np.mean(np.log(true)))
    return measured
