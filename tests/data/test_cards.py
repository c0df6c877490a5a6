"""What terminals and notebooks show of public objects: short, escaped, and nothing of a row."""

from __future__ import annotations

import inspect
import re
from html.parser import HTMLParser
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline

import hedgerow
from hedgerow import (
    Budget,
    Categorical,
    Disclosure,
    Label,
    Ledger,
    Limits,
    Numeric,
    Ordinal,
    Privacy,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateScorer,
    PrivateSurvivalBoosting,
    PrivateTreeClassifier,
    Schema,
    SimilarityBoostingClassifier,
    SimilarityBoostingRegressor,
    SimilarityMemory,
    Unit,
    VerticalBoostingClassifier,
    VerticalBoostingRegressor,
    Weight,
    evaluate_privately,
    rows_of,
    search_cost,
    spending,
)
from hedgerow.audit import AuditSettings, Verification, one_run
from hedgerow.audit.verification import Finding
from hedgerow.data.cards import MOST_ROWS, Card, Shown, html_of, line_of
from hedgerow.inspection import plot_tree
from tests.contracts.test_public_names import public_names

HOSTILE = "<script>alert('x')</script>&\"</style><!--"
CLASSES = ("<img src=x onerror=alert(1)>", "b & c")
N = 900
RNG = np.random.default_rng(11)
TABLE = {
    HOSTILE: RNG.uniform(0, 1, N),
    "age": RNG.uniform(0, 100, N),
    "code": RNG.integers(0, 300, N),
}
LABELS = np.array(CLASSES)[(TABLE["age"] > 50).astype(int)]
SCHEMA = Schema(
    (Numeric(HOSTILE, 0, 1), Numeric("age", 0, 100), Categorical("code", tuple(range(300)))),
    Label("</td><b>label", CLASSES),
    name="<i>table",
)
PARTIES = np.array(["north", "river", "summit"])[np.arange(N) % 3]


def made() -> dict[str, Any]:
    """An instance of every public class that has any, by its name."""
    ledger = Ledger.in_memory()
    model = PrivateBoostingClassifier(SCHEMA, ledger=ledger).fit(TABLE, LABELS, parties=PARTIES)
    tree = PrivateTreeClassifier(schema=SCHEMA, epsilon=4.0, max_depth=2).fit(TABLE, LABELS)
    explanation = model.explain()
    trees = PrivateBoostingClassifier(SCHEMA, method="random-trees", n_trees=9, max_depth=2)
    pair = trees.fit(TABLE, LABELS).explain().pairs[0]
    evaluation = evaluate_privately(model, TABLE, LABELS, epsilon=1.0, delta=1e-6)
    rows = rows_of({**TABLE, SCHEMA.label.name: LABELS}, SCHEMA)
    federation = hedgerow.local_federation({"a": rows}, SCHEMA, ledger, 1, 1, "coordinator")
    found = [
        model, model.model_, model.statement_, model.plan_, SCHEMA, *SCHEMA.columns, SCHEMA.label,
        ledger, ledger.history()[0], evaluation, evaluation["auc"], explanation,
        explanation.shapes[0],
        Ordinal("code", tuple(range(300))), Unit(), Weight("w", 2.0), Budget(1.0, 1e-6),
        Privacy(1.0, 1e-6),
        Limits(), Disclosure("everyone", "all rows", HOSTILE), spending(ledger), tree, tree.view_,
        plot_tree(tree.model_), explanation.contributions(TABLE), federation,
        PrivateBoostingRegressor(SCHEMA), PrivateSurvivalBoosting(SCHEMA),
        SimilarityBoostingClassifier(SCHEMA),
        SimilarityBoostingRegressor(SCHEMA), SimilarityMemory(), VerticalBoostingClassifier(SCHEMA),
        VerticalBoostingRegressor(SCHEMA), AuditSettings(), rows,
        pair, model.model_.trees[0], model.model_.trees[0].structure,
        PrivateScorer("auc", 0.1), search_cost(model, TABLE, LABELS, cv=2),
        one_run(model.plan_, SCHEMA, canaries=20, rows=200, seed=1),
        Verification("0" * 64, "run", "epsilon = 1", (Finding("model", HOSTILE),), ("a", "b")),
    ]  # fmt: skip
    return {type(value).__name__: value for value in found}


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    return made()


WITHOUT = {"Exported"}  # the facts of a file that was written, which are few


def test_every_public_class_is_looked_at(objects: dict[str, Any]) -> None:
    public = set()
    for name in public_names():
        module, _, attribute = name.rpartition(".")
        value = getattr(import_module(module), attribute)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            public.add(attribute)
    assert public - set(hedgerow.testing.__all__) - WITHOUT - set(objects) == set(), (
        "add it to `made`"
    )


def test_a_terminal_shows_a_few_lines_and_no_array(objects: dict[str, Any]) -> None:
    for name, value in objects.items():
        text = repr(value)
        assert len(text.splitlines()) <= 10, name
        assert len(text) <= 900, (name, len(text))
        assert "array(" not in text, name
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text), name


class Reader(HTMLParser):
    """Tags with their attributes, and all text outside of style sheets."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self._in_style = "", False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._in_style else data


def html_shown(value: Any) -> str:
    if hasattr(value, "_repr_mimebundle_"):
        return str(value._repr_mimebundle_()["text/html"])
    return str(value._repr_html_())


ALLOWED = {
    "div", "style", "p", "table", "tr", "th", "td", "svg", "title", "rect", "line", "path", "text",
    "circle", "g",
}  # fmt: skip


def test_notebooks_show_tables_that_run_and_load_nothing(objects: dict[str, Any]) -> None:
    shown = [v for v in objects.values() if isinstance(v, Shown) or hasattr(v, "model_")]
    assert len(shown) >= 12
    for value in shown:
        html = html_shown(value)
        page = Reader(html)
        assert {tag for tag, _ in page.tags} <= ALLOWED, type(value)
        for _, attributes in page.tags:
            assert not {n for n in attributes if n.startswith("on") or n in ("src", "href")}
        sheets = "".join(re.findall(r"<style>(.*?)</style>", html, re.DOTALL))
        assert not re.search(r"url\(|@import|expression", sheets)
        assert len(html) < 60_000


@pytest.mark.parametrize("name", ["Schema", "Explanation", "TreeView", "Ensemble", "Numeric"])
def test_hostile_names_are_text(name: str, objects: dict[str, Any]) -> None:
    value = objects[name] if name != "Numeric" else objects["PrivateTreeClassifier"]
    page = Reader(html_shown(value))
    assert "script" not in {tag for tag, _ in page.tags}
    assert "img" not in {tag for tag, _ in page.tags}
    assert ("<script>" in page.text) or ("<img" in page.text)  # seen as it was written


def test_what_is_not_private_says_so_first() -> None:
    model = SimilarityBoostingClassifier(SCHEMA, n_trees=2).fit(TABLE, LABELS)
    assert Reader(html_shown(model)).text.strip().startswith("SimilarityBoostingClassifierNOT PRIV")
    assert repr(model.model_).startswith("<Model: NOT PRIVATE; ")
    assert "epsilon" not in repr(model.statement_)


def test_a_fitted_estimator_shows_its_promise_and_an_unfitted_one_its_diagram(
    objects: dict[str, Any],
) -> None:
    fitted = objects["PrivateBoostingClassifier"]
    text = Reader(html_shown(fitted)).text
    for fact in ("epsilon1", "delta1e-06", "parties3: north, river, summit", "trees"):
        assert fact in text
    assert "sk-" in html_shown(PrivateBoostingClassifier(SCHEMA))
    assert "sk-" in make_pipeline(fitted)._repr_mimebundle_()["text/html"]
    with config_context(display="text"):
        assert set(fitted._repr_mimebundle_()) == {"text/plain"}
    loaded = hedgerow.load(fitted.model_.to_bytes())
    assert "does not hold: random_state" in Reader(html_shown(loaded)).text


def test_rows_show_neither_values_nor_their_number(objects: dict[str, Any]) -> None:
    assert str(N) not in repr(objects["Rows"]) + html_shown(objects["Rows"])


def test_a_closed_ledger_still_has_a_name(tmp_path: Any) -> None:
    ledger = Ledger.open(tmp_path / "a.ledger")
    ledger.close()
    assert repr(ledger) == f"<Ledger: {tmp_path / 'a.ledger'}>"


def test_long_tables_and_texts_are_cut() -> None:
    rows = tuple((f"row {i}", i) for i in range(1000))
    card = Card("Long", (("text", "x" * 5000), ("nothing", "")), ("name", "number"), rows)
    assert "nothing" not in line_of(card)
    assert len(line_of(card)) < 100
    html = html_of(card)
    assert html.count("<tr>") == 2 + MOST_ROWS
    assert "and 976 more" in html
    assert len(html) < 10_000
