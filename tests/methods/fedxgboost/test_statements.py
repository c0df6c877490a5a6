"""What statements of vertical models say: what was measured, and what an epsilon is worth."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from hedgerow import VerticalBoostingClassifier
from hedgerow.audit.fedxgboost_labels import most_accurate
from hedgerow.errors import SettingsError
from hedgerow.methods.fedxgboost.run import agreement_for
from hedgerow.methods.fedxgboost.statements import disclosures, statement_for
from tests.methods.fedxgboost.tables import schema_of, settings

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "vertical_audit.json"


def told(protection: str) -> str:
    """All that is shown, in one text."""
    return " ".join(one.what for one in disclosures(settings(protection=protection)))


def test_what_a_label_promise_is_worth_is_what_was_proven() -> None:
    for epsilon in (0.5, 1.0, 20.0):
        used = settings(protection="ldp", epsilon=epsilon)
        statement = statement_for(agreement_for(schema_of(), used, "r"), used, simulated=True)
        found = re.search(r"at most ([\d.]+) % of cases", statement.words())
        assert found is not None
        assert float(found[1]) / 100 == pytest.approx(most_accurate(epsilon, [0.5, 0.5]), rel=1e-3)
        assert math.isclose(statement.epsilon, epsilon)
        assert "Trust is simulated here" in statement.words()
    apart = statement_for(agreement_for(schema_of(), used, "r"), used)
    assert "simulated" not in apart.words()


def test_figures_in_statements_are_those_of_the_audit() -> None:
    found = json.loads(RESULTS.read_text())["datasets"]["credit1_full"]
    one, many = found["smm-1"]["0.95"], found["smm-1"]
    runs = found["labels from SMM-2 with 32 bins"]["0.95"]

    def percent(value: float) -> str:
        return f"{100 * value:.0f} %"

    first, second = told("smm-1"), told("smm-2")
    assert f"{percent(many['0.1']['splits, 1 trees']['best'])} of its entries at 0.1 n" in first
    assert f"{percent(many['0.5']['splits, 1 trees']['best'])} at 0.5 n" in first
    single, eight, all_trees = (one[f"splits, {n} trees"] for n in (1, 8, 20))
    assert f"{percent(single['best'])} in one tree" in first
    assert f"({percent(single['baseline'])} by guessing)" in first
    assert f"{percent(eight['best'])} in 8, {percent(all_trees['best'])} in 20" in first
    assert many["0.1"]["labels from vectors"]["above_chance"] < 0.1
    assert many["0.5"]["labels from vectors"]["best"] == one["labels from vectors"]["best"] == 1.0
    assert f"{percent(runs['1'])} of the labels" in second
    assert f"({percent(runs['guessing'])} by guessing)" in second
    assert runs["2"] == 1.0
    bins = [found["smm-2"][share]["bins from vectors"]["best"] for share in ("0.5", "0.9", "0.95")]
    assert "{} of rows at 0.5, {} at 0.9 and {} at 0.95".format(*map(percent, bins)) in second


def test_who_gets_sums_is_told_what_a_bin_of_one_row_shows() -> None:
    for protection in ("paillier", "smm-1"):
        assert "a bin that holds one row shows which row that is" in told(protection)
    assert "a bin that holds one row shows its gradient, hence its label" in told("smm-2")


def test_an_epsilon_without_ldp_is_refused() -> None:
    model = VerticalBoostingClassifier(bounds=(0, 1), classes=[0, 1], settings={"epsilon": 2.0})
    with pytest.raises(SettingsError, match="epsilon belongs to protection ldp"):
        model.fit([[0.1, 0.2], [0.3, 0.4]], [0, 1], owners={"x1": "shop"})
