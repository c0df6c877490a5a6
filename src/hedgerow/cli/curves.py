"""Expected errors and simulated curves against epsilon, as tables and pictures.

`hedgerow advise` and `hedgerow plan` show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.progress import counting
from hedgerow.cli.screen import results, show, table
from hedgerow.errors import HedgerowError, SettingsError

if TYPE_CHECKING:
    from hedgerow.cli.options import SampleOptions
    from hedgerow.inspection.advice import Curve, Facts
    from hedgerow.inspection.advice.chart import EpsilonChart
    from hedgerow.privacy.settings import Privacy

PUBLIC_ONLY = (
    "The sample is read freely and nothing is charged for it: it must be public or synthetic. "
    "A curve tried out on private rows would itself tell about them."
)
STEPS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
TRIED = (0.1, 0.3, 1.0, 3.0, 10.0)  # by simulation, which takes longer
_BAR = 28  # letters of the longest bar


def check_epsilons(values: Sequence[float]) -> tuple[float, ...]:
    """Epsilons of a table or curve, rising and each once."""
    if not all(0 < value <= 1e3 for value in values):
        raise SettingsError("epsilons must be above 0 and at most 1000. Nothing was asked.")
    return tuple(sorted(set(values)))


def errors_by_epsilon(
    facts: Facts, privacy: Privacy, epsilons: Sequence[float]
) -> list[dict[str, Any]]:
    """Expected errors at each epsilon, by the names that --json uses."""
    from hedgerow.inspection.advice import expected_error

    lines = []
    for epsilon in epsilons:
        try:
            plan = facts.plan(replace(privacy, epsilon=epsilon))
        except HedgerowError:  # too small to plan with
            continue
        expected = expected_error(facts, plan)
        if expected is not None:
            lines.append(
                {
                    "epsilon": epsilon,
                    "mu": plan.mu,
                    "strength": expected.strength,
                    "signal": signal_of(expected.strength),
                    "leaf_error": expected.leaf,
                    "group_error": expected.group,
                    "row_error": expected.row,
                    "leaves": expected.leaves,
                    "unit": expected.unit,
                }
            )
    return lines


def signal_of(strength: float) -> str:
    """S in a word, by the steps of the public rule."""
    from hedgerow.methods.auto.rule import HIGH, LOW, MIDDLE, NOTHING

    words = ((NOTHING, "next to none"), (LOW, "little"), (MIDDLE, "some"), (HIGH, "much"))
    return next((word for limit, word in words if strength < limit), "plenty")


def show_errors(lines: Sequence[dict[str, Any]], facts: Facts) -> None:
    if not lines:
        show(
            f"The method {facts.method!r} has no leaf sums with Gaussian noise to expect errors of."
        )
        return
    unit = lines[0]["unit"]
    what = ("epsilon", "mu", "S", "signal", "leaves", "leaf weight", "tenth of rows", "row's score")
    right = tuple(name for name in what if name != "signal")
    shown = table(
        f"Noise with {facts.n_rows:,} rows (standard errors in {unit})", *what, right=right
    )
    for line in lines:
        shown.add_row(
            f"{line['epsilon']:g}", f"{line['mu']:.3g}", f"{line['strength']:,.0f}", line["signal"],
            str(line["leaves"]), f"{line['leaf_error']:.3g}", f"{line['group_error']:.3g}",
            f"{line['row_error']:.3g}",
        )  # fmt: skip
    results().print(shown)
    show(
        "S is rows times mu over the root of the columns. Leaves are those of a tree, or the bins "
        "of a column in the default method, which cuts finer where there is more signal: compare "
        "the mean weight of a tenth of the rows. Errors are of noise alone, before the smoothing "
        "and shrinkage that hold them down, with rows even over leaves."
    )


def simulated(
    facts: Facts,
    privacy: Privacy,
    chosen: SampleOptions,
    epsilons: Sequence[float],
) -> Curve | None:
    """The curve of a sample if there is one, with a bar on stderr while it is tried out."""
    from hedgerow.data.tables import rows_of
    from hedgerow.inspection.advice import simulate

    if chosen.sample is None:
        return None
    rows, repeats = rows_of(chosen.sample, facts.schema), chosen.repeats
    with counting("trainings on the sample", (len(epsilons) + 1) * repeats) as bar:
        return simulate(facts, rows, privacy, epsilons, chosen.metric, repeats, bar.advance)


def show_curve(curve: Curve) -> None:
    """The curve as a table with bars; a longer bar is better."""
    means = [*(point.mean for point in curve.points), curve.without.mean]
    worst, best = (min(means), max(means)) if curve.rising else (max(means), min(means))
    room = (best - worst) or 1.0
    worst -= 0.1 * room
    what = ("epsilon", curve.metric, "between runs", "")
    title = f"{curve.metric} on held-out rows of the sample, noise as with {curve.n_rows:,} rows"
    shown = table(title, *what, right=what[:3])

    def bar(value: float) -> str:
        return "█" * max(1, round(_BAR * (value - worst) / (best - worst or 1.0)))

    for point in curve.points:
        shown.add_row(
            f"{point.epsilon:g}", f"{point.mean:.4f}", f"{point.deviation:.4f}", bar(point.mean)
        )
    shown.add_row("no noise", f"{curve.without.mean:.4f}", f"{curve.without.deviation:.4f}",
                  bar(curve.without.mean))  # fmt: skip
    results().print(shown)
    if curve.n_rows > curve.n_sample:
        show(
            f"The sample has {curve.n_sample:,} rows; noise was scaled to weigh as much as among "
            f"{curve.n_rows:,}. With so many different rows a model can be better than here."
        )
    show(PUBLIC_ONLY, style="yellow")


def curve_picture(
    curve: Curve, target: float | None, mark: float | None, words: str
) -> EpsilonChart:
    """Simulated values against epsilon."""
    from hedgerow.inspection.advice.answers import NAMES
    from hedgerow.inspection.advice.chart import Dot, EpsilonChart

    dots = tuple(
        Dot(p.epsilon, p.mean, p.mean - p.deviation, p.mean + p.deviation) for p in curve.points
    )
    n = len(curve.points[0].values)
    note = (
        f"Simulated on a public or synthetic sample of {curve.n_sample:,} rows with the noise of a "
        f"run; {'one training' if n == 1 else f'{n} trainings'} an epsilon"
        f"{'' if n == 1 else ', band: deviation between them'}."
    )
    name = NAMES[curve.metric][0].upper() + NAMES[curve.metric][1:]
    title = f"{name} against epsilon, {curve.n_rows:,} rows"
    return EpsilonChart(title, name, dots, note, curve.without.mean, target, mark, words)


def error_picture(
    lines: Sequence[dict[str, Any]], facts: Facts, target: float | None, mark: float | None,
    words: str,
) -> EpsilonChart:  # fmt: skip
    """Expected errors of leaf weights against epsilon."""
    from hedgerow.inspection.advice.chart import Dot, EpsilonChart

    dots = tuple(Dot(li["epsilon"], *(li["leaf_error"],) * 3) for li in lines)
    note = "From public facts alone: standard error of noise, before smoothing and shrinkage."
    title = f"Error of a leaf weight against epsilon, {facts.n_rows:,} rows"
    label = f"standard error, {lines[0]['unit']}"
    return EpsilonChart(title, label, dots, note, None, target, mark, words, logarithmic=True)


def write_picture(path: Path, chart: EpsilonChart) -> None:
    from hedgerow.cli.files import write_text

    if path.suffix.lower() != ".svg":
        raise SettingsError(f"{path} is no name of a picture; name a file that ends in .svg")
    write_text(path, chart.picture().svg)
