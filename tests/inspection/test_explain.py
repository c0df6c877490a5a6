"""Explanations: effects add up to the model, bands to its noise, parts of rows to their scores."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from hedgerow import Ensemble, PrivateBoostingClassifier
from hedgerow.data.tables import encode_table, rows_of
from hedgerow.errors import FormatError, SettingsError
from hedgerow.inspection.drawing.words import number
from hedgerow.inspection.explain import Explanation, edit, explain, rows
from hedgerow.inspection.explain.cells import boxes_of, cells_of
from hedgerow.inspection.explain.effects import effects_of
from hedgerow.inspection.explain.shape_chart import MOST_LISTED
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.conftest import MIXED, mixed_rows, mixed_table, train
from tests.oracle.runs import LABELS, schema_of, table_of
from tests.randomness import cached

TABLE = mixed_table(600, seed=5)
PLAIN = {name: values for name, values in TABLE.items() if name != "sick"}


@cached
def model_of(method: str, features: int = 0, **settings: Any) -> Ensemble:
    given: dict[str, Any] = {"n_trees": 6, "max_depth": 3} if method != "auto" else {}
    given |= {"features_per_tree": features} if features else {}
    rows = {"all": mixed_rows(TABLE)}
    return train(rows, MIXED, Privacy(4.0, 1e-5), {**given, **settings}, method=method)[0]


def added_up(found: Explanation, table: dict[str, list[Any]]) -> Any:
    """Intercept, shapes and maps looked up and added: (row, output)."""
    codes = encode_table(table, tuple(c.grid for c in found._cells), "test")
    place = {shape.column: codes.column(j) for j, shape in enumerate(found.shapes)}
    total = found.intercept + np.zeros((codes.n_rows, len(found.outputs)))
    for shape in found.shapes:
        total += shape.values[:, place[shape.column]].T
    for pair in found.pairs:
        first, second = (place[name] for name in pair.columns)
        total += pair.values[:, first, second].T
    return total


@pytest.mark.parametrize("features", [1, 2])
@pytest.mark.parametrize("method", ["random-trees", "dp-rf", "feverless"])
def test_trees_of_one_and_two_columns_are_the_sum_of_their_effects(
    method: str, features: int
) -> None:
    model = model_of(method, features)
    found = explain(model)
    assert found.additive
    assert bool(found.pairs) == (features == 2)
    np.testing.assert_allclose(added_up(found, PLAIN), model.decision_function(PLAIN), atol=1e-9)
    assert found.remainder == 0.0


@pytest.mark.parametrize("loss", LABELS)
def test_every_task_adds_up_in_units_of_its_label(loss: str) -> None:
    schema, table = schema_of(loss), table_of(300, 1)
    settings = {"n_trees": 4, "max_depth": 2, "features_per_tree": 2}
    used = {name: table[name] for name in (*schema.names, schema.label.name)}
    rows = rows_of(used, schema)
    model = train({"all": rows}, schema, Privacy(4.0, 1e-5), settings)[0]
    plain = {name: values for name, values in table.items() if name in MIXED.names}
    found, scores = explain(model), model.decision_function(plain)
    label = schema.label
    if label.lower is not None and label.upper is not None:
        scores = label.lower + (label.upper - label.lower) * scores
    np.testing.assert_allclose(added_up(found, plain), scores, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found.contributions(plain).scores, scores, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("method", ["auto", "random-trees", "dp-rf"])
def test_parts_of_rows_add_up_to_their_scores(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(method)
    parts = explain(model).contributions(PLAIN)
    assert parts.columns == MIXED.names
    np.testing.assert_allclose(parts.scores, model.decision_function(PLAIN), atol=1e-9)
    if method == "random-trees":  # leaf by leaf instead of cell by cell
        monkeypatch.setattr(rows, "MAX_TABLE", 0)
        again = explain(model).contributions(PLAIN)
        np.testing.assert_allclose(again.values, parts.values, atol=1e-9)


def test_parts_of_rows_are_shapley_values() -> None:
    model = model_of("random-trees")
    found = explain(replace(model, trees=model.trees[1:2]))
    codes = [np.array([cells.grid.n_codes // 2]) for cells in found._cells]
    tree, box = found.model.trees[0], found._boxes[0]
    weights = [shape.weights for shape in found.shapes]
    assert len(box.columns) > 2
    inside = dict(zip(box.columns, box.inside, strict=True))

    def worth(known: tuple[int, ...]) -> float:
        held = np.ones(len(tree.values))
        for j, cells in inside.items():
            held *= cells[:, codes[j][0]] if j in known else cells @ weights[j]
        return float(held @ tree.values[:, 0])

    n = len(inside)
    for j in inside:
        others, expected = [i for i in inside if i != j], 0.0
        for size in range(n):
            share = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for some in combinations(others, size):
                expected += share * (worth((*some, j)) - worth(some))
        assert found._parts(codes)[0, 0, j] == pytest.approx(expected, abs=1e-9)


def test_deviations_are_those_of_effects_whose_leaves_move() -> None:
    model = model_of("random-trees", 2)
    found, rng = explain(model), np.random.default_rng(0)
    cells = cells_of(model.trees, MIXED)
    boxes = [boxes_of(tree.structure, cells) for tree in model.trees]
    weights = [shape.weights for shape in found.shapes]
    main_effects, pairs = [], []
    pair = found.pairs[0]
    numbers = tuple(sorted(MIXED.names.index(name) for name in pair.columns))
    for _ in range(1500):
        trees = [
            replace(t, values=t.values + rng.normal(size=t.values.shape) * t.deviation)
            for t in model.trees
        ]
        effects = effects_of(trees, boxes, weights, 1)
        main_effects.append(effects.main_effects[0])
        pairs.append(effects.pairs[numbers])
    for seen, said in ((main_effects, found.shapes[0].deviation), (pairs, pair.deviation)):
        np.testing.assert_allclose(np.std(seen, axis=0), said, rtol=0.2, atol=1e-6)


def test_weights_are_released_counts_or_the_schema() -> None:
    with noise_off():
        found = explain(
            train({"all": mixed_rows(TABLE)}, MIXED, Privacy(4.0, 1e-5), {}, method="auto")[0]
        )
    age = found.shape("age")
    assert age.released
    # Without noise a cell's weight is its share of the rows, the cell of missing ages included.
    codes = encode_table({"age": TABLE["age"]}, (age.cells.grid,), "test").column(0)
    shares = np.bincount(codes, minlength=len(age.weights)) / len(codes)
    np.testing.assert_allclose(age.weights, shares, atol=1e-6)
    assert shares[-1] > 0.1
    bare = [replace(tree, cover=None, deviation=None) for tree in found.model.trees]
    unknown = explain(replace(found.model, trees=tuple(bare)))
    assert not unknown.shape("age").released
    assert np.isnan(unknown.shape("age").deviation).all()
    assert any("holds no row counts" in note for note in unknown.notes)
    assert any("no bands" in note for note in unknown.notes)


def test_weights_are_those_of_the_covers() -> None:
    model = model_of("random-trees", 1)
    tree = next(t for t in model.trees if 0 in t.structure.feature)  # a tree of ages
    cover = np.arange(1.0, tree.structure.n_leaves + 1).astype(np.float32)
    found = explain(replace(model, trees=(replace(tree, cover=cover),)))
    inside, weights = found._boxes[0].inside[0], found.shape("age").weights
    np.testing.assert_allclose(inside @ weights, cover / cover.sum())


def test_directions_are_marked_where_the_shape_keeps_them() -> None:
    model = model_of("auto", monotone='{"age": 1}')
    age = explain(model).shape("age")
    assert age.direction == 1
    assert (np.diff(age.values[0, age.shown[:-1]]) >= -1e-6).all()
    bent = edit(model, "age", {age.cells.labels[0]: 5.0}, reason="a test")
    assert explain(bent).shape("age").direction == 0


def test_an_edit_changes_one_shape_and_is_on_record() -> None:
    model = model_of("auto")
    before = explain(model)
    cell = before.shape("site").cells.labels[0]
    changed = edit(model, "site", {cell: 0.75}, reason="the north has a new hospital")
    after = explain(changed)
    site = after.shape("site")
    assert site.values[0, 0] == pytest.approx(0.75, abs=1e-6)
    assert site.deviation[0, 0] == 0.0
    np.testing.assert_allclose(site.values[0, 1:], before.shape("site").values[0, 1:], atol=1e-9)
    for name in ("age", "dose", "stage", "code"):
        np.testing.assert_allclose(after.shape(name).values, before.shape(name).values, atol=1e-9)
    moved = changed.decision_function(PLAIN) - model.decision_function(PLAIN)
    step = 0.75 - before.shape("site").values[0, 0]
    here = np.array(PLAIN["site"]) == cell
    np.testing.assert_allclose(moved[:, 0], np.where(here, step, 0.0), atol=1e-6)
    assert changed.statement.edits == 1
    assert "Changed by hand once" in changed.statement.words()
    assert changed.statement.promise() == model.statement.promise()
    entry = changed.record["edits"][0]
    assert (entry["column"], entry["cells"], entry["from"]) == ("site", [cell], model.hash)
    assert any("new hospital" in note for note in after.notes)
    again = Ensemble.from_bytes(changed.to_bytes())
    assert explain(again).shape("site").values[0, 0] == pytest.approx(0.75, abs=1e-6)
    np.testing.assert_allclose(
        after.contributions(PLAIN).scores, changed.decision_function(PLAIN), atol=1e-9
    )


def test_edits_by_range_and_by_direction() -> None:
    model = model_of("auto")
    flat = explain(edit(model, "dose", {(-1, 5): 0.0}, reason="no effect wanted")).shape("dose")
    assert np.abs(flat.values[0, :-1]).max() < 1e-6
    # Noise may have made the shape rise already; one that falls has to be changed.
    falling = edit(model, "dose", {(-1, 2): 1.0, (2, 5): -1.0}, reason="to begin with")
    rising = explain(edit(falling, "dose", direction=1, reason="known to rise")).shape("dose")
    assert (np.diff(rising.values[0, :-1]) >= -1e-6).all()
    assert rising.direction == 1
    twice = edit(edit(model, "dose", {(-1, 5): 0.0}, reason="a"), "site", {"east": 0.0}, reason="b")
    assert twice.statement.edits == 2
    assert "2 times" in twice.statement.words()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"column": "height", "values": {"a": 1.0}, "reason": "x"}, "no column 'height'"),
        ({"column": "site", "values": {"a": 1.0}, "reason": "x"}, "no cell 'a'"),
        ({"column": "site", "values": {"north": 1.0}, "reason": " "}, "for a reason"),
        ({"column": "site", "values": {"north": math.nan}, "reason": "x"}, "not a number"),
        ({"column": "site", "reason": "x"}, "either new values or a direction"),
        ({"column": "site", "direction": 1, "reason": "x"}, "has no order"),
        ({"column": "dose", "values": {(1, 1.001): 1.0}, "reason": "x"}, "no cell of 'dose'"),
        ({"column": "site", "values": {"north": 1.0}, "output": 3, "reason": "x"}, "no output 3"),
    ],
)
def test_what_cannot_be_edited_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        edit(model_of("auto"), given.pop("column"), given.pop("values", None), **given)


def test_a_record_of_edits_that_is_damaged_is_a_format_error() -> None:
    model = model_of("auto")
    with pytest.raises(FormatError, match="changes by hand"):
        explain(replace(model, record={**model.record, "edits": [{"tree": 0}]}))


def test_estimators_explain_themselves() -> None:
    fitted = PrivateBoostingClassifier(MIXED, epsilon=4.0).fit(TABLE)
    found = fitted.explain()
    assert {shape.column for shape in found.shapes} == set(MIXED.names)
    names = [name for name, _, _ in found.importances]
    assert names[0] == "age"
    assert found.to_dict()["shapes"][0]["cells"]
    with pytest.raises(SettingsError, match="no tree of the model has both"):
        explain(model_of("random-trees", 1)).pair("age", "site")


def test_pictures_can_be_drawn() -> None:
    found = explain(model_of("random-trees", 2))
    for column in MIXED.names:
        root = ElementTree.fromstring(found.plot(column).svg)
        assert f"Effect of {column}" in [text.text for text in root.iterfind(".//{*}text")]
        dots = len(root.findall("{*}circle"))
        if found.shape(column).cells.kind == "numeric":
            assert dots == int(found.shape(column).cells.possible[-1])
        else:
            assert dots == min(len(found.shape(column).shown), MOST_LISTED)
    root = ElementTree.fromstring(found.plot(*found.pairs[0].columns).svg)
    words = " ".join(text.text or "" for text in root.iterfind(".//{*}text"))
    assert all(column in words for column in found.pairs[0].columns)


def test_notes_say_how_wide_bands_of_the_default_method_are() -> None:
    default, others = (" ".join(explain(model_of(m)).notes) for m in ("auto", "random-trees"))
    assert "half as wide again" in default
    assert "is not counted" not in default
    assert "half as wide again" not in others
    assert "later rounds is not counted" in others


def test_pictures_of_multiclass_models_show_all_of_them() -> None:
    schema = schema_of("softmax-3")
    rows = {"all": rows_of(table_of(300, seed=2), schema)}
    settings = {"n_trees": 4, "max_depth": 2}
    found = explain(train(rows, schema, Privacy(8.0, 1e-3), settings)[0])
    root = ElementTree.fromstring(found.plot(found.shapes[0].column).svg)
    words = {text.text for text in root.iterfind(".//{*}text")}
    assert set(found.outputs) <= words
    assert len(root.findall("{*}path[@class='line c3']")) == 1
    root = ElementTree.fromstring(found.plot(*found.pairs[0].columns).svg)
    named = [t.text or "" for t in root.iterfind(".//{*}text") if "upward" in (t.text or "")]
    assert [text.rpartition(", ")[2] for text in named] == list(found.outputs)


def test_maps_of_one_explanation_share_a_scale_of_colours_with_their_noise_marked() -> None:
    found = explain(model_of("random-trees"))
    assert len(found.pairs) > 1
    most = max(float(np.abs(pair.values).max()) for pair in found.pairs)
    for pair in found.pairs:
        svg = found.plot(*pair.columns).svg
        assert f">+{number(most)}<" in svg
        assert f"noise ±{number(pair.noise)} (one deviation)" in svg
        marks = [float(mark.get("fill-opacity", "1")) for mark in cells_drawn(svg)]
        reached = float(np.abs(pair.values).max()) / most
        assert max(marks) <= 0.06 + 0.94 * reached + 0.006  # stretches are means of cells


def test_a_map_whose_noise_is_not_known_says_so() -> None:
    found = explain(model_of("random-trees"))
    pair = replace(found.pairs[0], deviation=np.full_like(found.pairs[0].deviation, np.nan))
    unknown = replace(found, pairs=(pair,))
    assert "noise not known" in unknown.plot(*pair.columns).svg


def cells_drawn(svg: str) -> list[ElementTree.Element]:
    """The cells of a map: the boxes that say what they show."""
    boxes = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
    return [box for box in boxes if len(box)]


def test_bands_that_nobody_measured_are_called_nominal() -> None:
    model = model_of("random-trees")
    record = {**model.record, "method": "another"}
    told = " ".join(explain(replace(model, record=record)).notes)
    assert "95 % bands by name" in told
    assert "was not measured" in told
    assert "% of cells" in " ".join(explain(model).notes)
