"""The report: one page that stands alone, whose numbers are the model's; seen in a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from hedgerow import Ensemble, Ledger, PrivateTreeClassifier, Schema
from hedgerow.data.schema import Categorical, Label, Numeric
from hedgerow.data.tables import rows_of
from hedgerow.errors import FormatError
from hedgerow.evaluation.result import (
    CalibrationPoint,
    Confusion,
    Evaluation,
    Findings,
    Measure,
    RocPoint,
)
from hedgerow.inspection.explain import edit, explain
from hedgerow.inspection.report import facts_of, report_html
from hedgerow.inspection.report.effect_cards import effects_of_model
from hedgerow.inspection.report.quality import calibration_picture
from hedgerow.model.changes import leaving_words
from hedgerow.model.statement import Statement
from hedgerow.privacy.ledger.spending import Budget, set_budget
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.conftest import MIXED, mixed_rows, mixed_table, train
from tests.randomness import cached

TABLE = mixed_table(500, seed=8)
ROWS = {"all": mixed_rows(TABLE)}
VOID = {"meta", "wbr"}  # what is never closed; in SVG it closes itself


@cached
def trained(method: str = "auto") -> tuple[Ensemble, Ledger]:
    ledger = Ledger.in_memory()
    set_budget(ledger, Budget(4.0, 1e-5))
    settings: dict[str, Any] = {} if method == "auto" else {"n_trees": 4, "max_depth": 2}
    model = train(ROWS, MIXED, Privacy(2.0, 1e-5), settings, ledger, method=method)[0]
    return model, ledger


def evaluation_of(model: Ensemble) -> Evaluation:
    findings = Findings(
        (Measure("auc", 0.8125, 0.01, 0.02, 0.0, 1.0), Measure("log_loss", None)),
        Confusion(("no", "yes"), ((90.0, 10.0), (20.0, 80.0)), 3.0),
        tuple(RocPoint(1 - x, x, x**0.5, x**0.5 - 0.01, x**0.5 + 0.01) for x in (0.0, 0.4, 1.0)),
        (CalibrationPoint(0.0, 0.5, 40.0, 0.3, 0.35, 0.2, 0.5),),
        ("a note of the evaluation",),
    )
    says = Statement("epsilon-delta", 0.25, 1e-6, "coordinator", builds_on=model.hash)
    return Evaluation(model.hash, "binary", "sick", "run", findings, says)


class Tags(HTMLParser):
    """Open tags must be closed in order; cells of tables are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def read(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


@pytest.mark.parametrize("method", ["auto", "random-trees", "dp-rf"])
def test_the_page_stands_alone(method: str) -> None:
    model, ledger = trained(method)
    page = report_html(model, ledger, evaluation_of(model))
    tags = read(page)
    assert not {"script", "link", "iframe"} & tags.names
    assert re.findall(r"(?:src|href)=\"(?!data:)", page) == []
    assert re.findall(r"https?://", page) == []
    assert "url(" not in page
    assert "@import" not in page


def test_numbers_are_those_of_the_model() -> None:
    model, ledger = trained()
    page = report_html(model, ledger)
    rows, found = read(page).rows, explain(model)
    for shape in found.shapes:
        if not shape.values.any():
            continue
        for c in shape.shown:
            low, high = shape.low[0, c], shape.high[0, c]
            band = f"{low:+.3f} to {high:+.3f}"
            weight = f"{100 * shape.weights[c]:.1f} %"
            expected = [shape.cells.labels[c], weight, f"{shape.values[0, c]:+.3f}", band]
            assert expected in rows
    for line in (*model.statement.words().split("\n"), leaving_words(model.statement)):
        assert line in unescape(page)
    for change in model.statement.changes():
        assert list(change.cells()) in rows
    assert f"{model.statement.releases}</b>" in page
    facts = facts_of(model, ledger)
    # Prices of questions are rounded down, by less than 0.003 % each.
    assert sum(part.share for part in facts.parts) == pytest.approx(1, abs=1e-4)
    assert [part.name for part in facts.parts][:3] == ["row count", "counts", "main effects"]
    assert sum(part.questions for part in facts.parts) == model.statement.releases
    assert facts.model == model.hash
    assert facts.sent is not None
    assert facts.sent >= 8 * facts.n_values


def test_a_budget_that_was_not_asked_for_is_not_called_spare_attempts() -> None:
    model, _ = trained()
    record = {**model.record, "asked": model.record["asked"][:3]}
    last = facts_of(replace(model, record=record)).parts[-1]
    assert (last.name, last.questions) == ("reserved, not used", 0)


def test_the_budget_bar_adds_up() -> None:
    model, ledger = trained()
    account = facts_of(model, ledger).account
    assert account is not None
    assert account.own + account.others + account.left == pytest.approx(1)
    assert (account.runs, account.budget, account.others) == (1, 4.0, 0.0)
    assert account.epsilon == pytest.approx(2.0, rel=1e-6)
    assert 0.1 < account.own < 0.6
    assert "out of a privacy budget of 4" in report_html(model, ledger)
    assert facts_of(model).account is None
    assert "--ledger FILE" in report_html(model)


def test_evaluations_are_shown_and_must_be_of_this_model() -> None:
    model, _ = trained()
    page = report_html(model, evaluation=evaluation_of(model))
    for told in ("0.812", "95 %: 0.769 to 0.856", "unknown", "a note of the evaluation", "ROC"):
        assert told in page
    assert "Not measured" not in page
    assert "Not measured" in report_html(model)
    with pytest.raises(FormatError, match="the evaluation is of the model 0000"):
        report_html(model, evaluation=replace(evaluation_of(model), model="0" * 64))


def test_models_without_a_promise_say_so_first() -> None:
    with noise_off():
        model = train(ROWS, MIXED, Privacy(2.0, 1e-5), {"n_trees": 2, "max_depth": 2})[0]
    page = report_html(model)
    assert "promise none" in page
    assert "NOT PRIVATE" in page.partition("Privacy guarantee")[0]
    assert ">none<" in page
    assert ">nothing<" in page
    assert "add or remove one row" not in page
    assert "NOT PRIVATE" not in report_html(trained()[0])


def test_labels_alone_are_said_to_be_protected() -> None:
    says = replace(trained()[0].statement, guarantee="label", epsilon=1.5, delta=0.0)
    page = report_html(replace(trained()[0], statement=says))
    assert "<b>1.5</b><small>label differential privacy</small>" in page
    assert "<b>labels</b>" in page
    assert "NOT PRIVATE" not in page.partition("Privacy guarantee")[0]


def test_edits_and_directions_are_marked() -> None:
    settings = {"monotone": '{"age": 1}'}
    model = train(ROWS, MIXED, Privacy(4.0, 1e-5), settings, method="auto")[0]
    page = report_html(edit(model, "site", {"north": 0.5}, reason="a new <b>house</b>"))
    assert "only rises" in page
    assert "edited by hand" in page
    assert "a new &lt;b&gt;house&lt;/b&gt;" in page
    assert "<b>house" not in page


def test_names_cannot_write_html() -> None:
    evil = '"><script>alert(1)</script>'
    columns = (Numeric(evil, 0, 10), Categorical("kind", (evil + "x", "b")))
    schema = Schema(columns, Label("y" + evil, (evil, "no")), name=evil)
    table = {evil: [1.0, 9.0] * 60, "kind": [evil + "x", "b"] * 60, "y" + evil: [evil, "no"] * 60}
    settings = {"n_trees": 4, "max_depth": 2}
    model = train({"all": rows_of(table, schema)}, schema, Privacy(8.0, 1e-3), settings)[0]
    page = report_html(model)
    assert "<script" not in page
    assert "script" not in read(page).names


def many(n_columns: int, n_classes: int, n_values: int = 3) -> Ensemble:
    """A model of lists of values, without noise to speak of."""
    columns = tuple(
        Categorical(f"column_{j}", tuple(f"v{v}" for v in range(n_values)))
        for j in range(n_columns)
    )
    schema = Schema(columns, Label("y", tuple(range(n_classes))))
    table: dict[str, Any] = {
        f"column_{j}": [f"v{(i * (j + 1)) % n_values}" for i in range(240)]
        for j in range(n_columns)
    }
    table["y"] = [i % n_classes for i in range(240)]
    settings = {"n_trees": 2, "max_depth": 1}
    rows = {"all": rows_of(table, schema)}
    return train(rows, schema, Privacy(50.0, 1e-3), settings, method="dp-ebm-newton")[0]


def test_every_class_has_a_colour_and_a_line_of_its_own() -> None:
    page = report_html(many(2, n_classes=13))
    legend = re.findall(r'<i class="key ([^>]+)></i>\d+<', page)
    assert len(legend) == len(set(legend)) == 13
    drawn = page.partition("<title>Effect of column_0</title>")[2].partition("</svg>")[0]
    places = [float(y) for y in re.findall(r'cy="([^"]+)"', drawn)]
    assert len(places) == len(set(places)) > 13


def test_what_a_picture_leaves_out_is_told() -> None:
    page = report_html(many(1, n_classes=2, n_values=40))
    assert "The 18 most common of 41 values; the table has all." in page
    assert "most common of" not in report_html(many(1, n_classes=2))


def test_many_columns_are_folded_away() -> None:
    page = report_html(many(70, n_classes=2))
    assert "<summary>10 more columns</summary>" in page
    assert re.search(r"not shown: (column_\d+, ){19}column_\d+ and \d+ others", page)
    assert "<small>70 columns</small>" in page
    assert "<small>1 column</small>" in report_html(many(1, n_classes=2))


def test_importances_of_rounding_alone_are_not_shown() -> None:
    found = explain(trained()[0])
    dust = replace(found, pairs=tuple(replace(p, importance=1e-18) for p in found.pairs))
    shown = effects_of_model(dust)
    assert not any(bar.is_pair for bar in shown.bars)
    assert (shown.pairs, shown.n_pairs) == ((), 0)


def test_bands_of_a_calibration_lie_within_its_picture() -> None:
    point = CalibrationPoint(0.0, 9000.0, 2900.0, 3093.0, 3137.0, 2700.0, 3500.0)
    drawn = calibration_picture((point,), is_rate=False).svg
    (ends,) = re.findall(r'y1="([0-9.]+)" x2="[0-9.]+" y2="([0-9.]+)" class="whisker"', drawn)
    top, bottom = sorted(float(y) for y in ends)
    assert 8 < top < bottom < 270 - 42  # not cut off at an end


def test_a_ledger_without_the_run_says_so() -> None:
    model, ledger = trained()
    told = "The run that trained this model is not on this ledger."
    assert told not in report_html(model, ledger)
    assert told in report_html(replace(model, record={**model.record, "run": "other"}), ledger)


def test_the_one_tree_is_drawn() -> None:
    fitted = PrivateTreeClassifier(schema=MIXED, epsilon=20.0, max_depth=2).fit(TABLE)
    page = report_html(fitted.model_)
    drawn = page.partition("<title>Decision tree for sick</title>")[2].partition("</svg>")[0]
    assert drawn.count("<rect class") + drawn.count('class="box') >= len(fitted.view_.nodes)
    assert "The whole model" in page
    read(page)


def test_a_damaged_record_is_a_format_error() -> None:
    model, _ = trained()
    with pytest.raises(FormatError, match="what was asked"):
        facts_of(replace(model, record={**model.record, "asked": [{"name": "x"}]}))
