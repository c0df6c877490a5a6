"""Pictures as figures of pyplot: there where a program uses pyplot, shown once, the same marks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import matplotlib as mpl
import numpy as np
import pytest

from hedgerow import PrivateBoostingClassifier, PrivateTreeClassifier, report_html
from hedgerow.inspection.drawing import Canvas
from hedgerow.inspection.drawing.pyplot import draw, offered
from hedgerow.inspection.drawing.style import LIGHT

N = 1500
X = np.random.default_rng(2).uniform(-1, 1, (N, 2))
Y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])


@pytest.fixture
def pyplot() -> Iterator[Any]:
    with mpl.rc_context({"backend": "agg"}):
        import matplotlib.pyplot as plt

        plt.switch_backend("agg")
        plt.close("all")
        yield plt
        plt.close("all")


@pytest.fixture(scope="module")
def tree() -> PrivateTreeClassifier:
    return PrivateTreeClassifier(epsilon=5.0, bounds=(-1, 1), classes=[0, 1, 2], max_depth=2).fit(
        X, Y
    )


def test_a_plot_is_pyplots_figure_until_it_is_shown_or_saved(
    pyplot: Any, tree: PrivateTreeClassifier, tmp_path: Path
) -> None:
    first, second = tree.plot(), tree.explain().plot("x0")
    assert pyplot.get_fignums() == [first.figure.number, second.figure.number]
    assert pyplot.gcf() is second.figure
    pyplot.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000
    root = fromstring(first._repr_svg_())
    assert root.get("style") == "max-width: 100%; height: auto"  # wide trees fit into notebooks
    assert root.get("viewBox") == f"0 0 {first.width:.0f} {first.height:.0f}"
    assert pyplot.get_fignums() == [second.figure.number]
    second.save(tmp_path / "b.svg")
    assert pyplot.get_fignums() == []


def test_a_report_leaves_no_figures(pyplot: Any, tree: PrivateTreeClassifier) -> None:
    assert "<svg" in report_html(tree.model_)
    tree.explain()._repr_html_()
    assert pyplot.get_fignums() == []


def test_a_program_without_pyplot_loads_nothing_of_matplotlib() -> None:
    program = (
        "import sys, numpy as np; from hedgerow import PrivateBoostingClassifier as P\n"
        "X = np.arange(800.0).reshape(-1, 1) / 800\n"
        "m = P(bounds=(0, 1), classes=[0, 1]).fit(X, (X[:, 0] > 0.5).astype(int))\n"
        "p = m.explain().plot('x0'); assert p.figure is None; assert '<svg' in p._repr_svg_()\n"
        "assert not [n for n in sys.modules if n.startswith('matplotlib')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=800)


def test_every_mark_of_a_picture_is_drawn(pyplot: Any, tree: PrivateTreeClassifier) -> None:
    model = PrivateBoostingClassifier(
        bounds=(-1, 1), classes=[0, 1, 2], method="random-trees", n_trees=8, max_depth=2
    ).fit(X, Y)
    explanation = model.explain()
    for picture in (tree.plot(), explanation.plot("x0"), explanation.plot("x0", "x1")):
        marks = list(fromstring(f"<g>{picture.marks}</g>").iter())
        texts = [mark.text for mark in marks if mark.tag == "text" and mark.text]
        shapes = [mark for mark in marks if mark.tag in ("line", "path", "rect", "circle")]
        axes = picture.figure.axes[0]
        assert [text.get_text() for text in axes.texts if text.get_text()] == texts
        assert len(axes.patches) == len(shapes)
        assert picture.figure.get_size_inches() == pytest.approx(
            (picture.width / 100, picture.height / 100)
        )


def test_marks_have_the_colours_of_the_style_sheet(pyplot: Any) -> None:
    canvas = Canvas(100, 50, "$x^2$ <b>")
    canvas.rect(0, 0, 10, 10, "fill", 1, opacity=0.5)
    canvas.line(0, 0, 5, 5, "zero")
    canvas.circle(5, 5, 2, "dot", 14)  # a series beyond the named ones
    canvas.text(1, 1, "$x^2$ <b>", kind="heading")
    figure = offered(canvas.picture()).figure
    box, line, dot = figure.axes[0].patches
    assert mpl.colors.to_hex(box.get_facecolor()) == LIGHT["c2"]
    assert box.get_facecolor()[3] == 0.5
    assert box.get_linewidth() == 0
    assert mpl.colors.to_hex(line.get_edgecolor()) == LIGHT["faint"]
    assert line.get_linestyle() != "-"
    assert mpl.colors.to_hex(dot.get_facecolor()) not in LIGHT.values()
    (words,) = figure.axes[0].texts
    assert words.get_text() == "$x^2$ <b>"
    assert not words.get_parse_math()
    assert mpl.colors.to_hex(words.get_color()) == LIGHT["ink"]


def test_a_figure_of_somebody_elses_can_be_drawn_on(tree: PrivateTreeClassifier) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    draw(tree.plot(), figure)
    assert figure.axes[0].texts
