"""A private model in XGBoost, explained with SHAP's TreeExplainer; the rows are made up here.

Run it with `python examples/shap_values/run.py`. It takes some ten seconds.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import xgboost

from hedgerow import Categorical, Label, Numeric, Ordinal, PrivateBoostingClassifier, Schema
from hedgerow.export import feature_names, feature_types

with warnings.catch_warnings():  # of what it imports itself
    warnings.simplefilter("ignore")
    import shap

# Public facts, agreed beforehand.
SCHEMA = Schema(
    columns=(
        Numeric("income", 0, 200),
        Numeric("debt", 0, 100),
        Ordinal("history", ("bad", "mixed", "good")),
        Categorical("purpose", ("car", "house", "holiday"), other="category"),
        Numeric("shoe size", 35, 48),  # of no use, and the model should see that
    ),
    label=Label("repaid", ("no", "yes")),
    name="loans",
)


def loans(n_rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Made-up loans; every fifth income is missing, and some purposes are not in the list."""
    income = np.where(rng.random(n_rows) < 0.2, np.nan, rng.gamma(4, 15, n_rows))
    debt = rng.uniform(0, 100, n_rows)
    history = rng.choice(["bad", "mixed", "good"], n_rows, p=[0.2, 0.5, 0.3])
    purpose = rng.choice(["car", "house", "holiday", "boat"], n_rows)
    score = 0.03 * np.nan_to_num(income - 60, nan=-10) - 0.03 * (debt - 50)
    score += 1.5 * (history == "good") - 1.5 * (history == "bad") - 0.8 * (purpose == "holiday")
    repaid = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-score)), "yes", "no")
    return {
        "income": income, "debt": debt, "history": history, "purpose": purpose,
        "shoe size": rng.uniform(35, 48, n_rows), "repaid": repaid,
    }  # fmt: skip


def main() -> None:
    rng = np.random.default_rng(11)
    model = PrivateBoostingClassifier(SCHEMA, epsilon=1.0, delta=1e-6).fit(loans(8_000, rng))
    new = loans(500, rng)  # applicants whose scores are to be explained; not among the rows above

    booster = xgboost.Booster()
    with tempfile.TemporaryDirectory() as folder:
        exported = model.to_xgboost(Path(folder) / "loans.json")
        booster.load_model(exported.path)
    matrix = xgboost.DMatrix(
        model.to_matrix(new),
        feature_names=feature_names(SCHEMA),
        feature_types=feature_types(SCHEMA),
        enable_categorical=True,
    )
    apart = np.abs(booster.predict(matrix) - model.predict_proba(new)[:, 1]).max()
    print(f"XGBoost's probabilities are within {apart:.0e} of hedgerow's.")
    print(f"Covers are {exported.covers}.\n")

    explainer = shap.TreeExplainer(booster)
    values = explainer.shap_values(matrix)  # (row, column), in log-odds of repaying
    average = float(np.ravel(explainer.expected_value)[0])
    print("Mean size of a column's part in the log-odds of repaying:")
    for j in np.argsort(-np.abs(values).mean(axis=0)):
        print(f"  {SCHEMA.names[j]:10} {np.abs(values[:, j]).mean():.2f}")

    lowest = int(np.argmin(booster.predict(matrix)))
    print("\nThe applicant with the lowest score:")
    print(f"  {'on average':10} {average:+.2f}")
    for j, name in enumerate(SCHEMA.names):
        shown = new[name][lowest]
        shown = f"{shown:.0f}" if isinstance(shown, float) else shown
        print(f"  {name:10} {values[lowest, j]:+.2f}   ({shown})")
    total = average + float(values[lowest].sum())
    print(f"  {'together':10} {total:+.2f}, a probability of {1 / (1 + np.exp(-total)):.2f}\n")

    print(booster.attr("hedgerow_promise"))


if __name__ == "__main__":
    main()
