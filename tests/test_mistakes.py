"""What a newcomer gets wrong, what the message says, its exit code, and that nothing was spent.

Every entry of `tests/mistakes.py` is one mistake on a folder that would otherwise train: a schema,
and the tables of three parties. Messages are read as a person would see them, on stderr.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow import PrivateBoostingClassifier
from hedgerow.cli.app import main
from hedgerow.cli.progress import Watch
from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Progress
from hedgerow.data.schema import Categorical, Label, Numeric, Schema
from hedgerow.data.tables import rows_of
from hedgerow.engines.local import local_federation
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import Budget
from tests.mistakes import FITS, GOOD, MISTAKES, PROMISE, TABLES, TRAIN, Fit, Mistake, X, Y

SCHEMA = Schema(
    columns=(
        Numeric("age", 0, 100),
        Numeric("dose", 0, 5, missing=False),
        Categorical("site", ("north", "south")),
    ),
    label=Label("sick", ("no", "yes")),
)


@dataclass(frozen=True)
class Shell:
    """Runs `hedgerow` in a folder, in this process, and gives its exit code and messages."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def __call__(self, *words: str) -> tuple[int, str]:
        self.capture.readouterr()
        self.patch.setattr(sys, "argv", ["hedgerow", *words])
        try:
            main()
        except SystemExit as end:
            code = end.code
        assert isinstance(code, int)
        return code, self.capture.readouterr().err

    def train(self, *words: str) -> tuple[int, str]:
        return self(*TRAIN, *TABLES, *PROMISE, *words)


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setenv("HEDGEROW_LEDGER", "m.hedge.ledger")
    monkeypatch.setenv("TERMINAL_WIDTH", "500")
    SCHEMA.write("schema.toml")
    for seed, name in enumerate("abc"):
        rng = np.random.default_rng(seed)
        lines = ["age,dose,site,sick"]
        for _ in range(40):
            age, dose = rng.uniform(0, 100), rng.uniform(0, 5)
            site, sick = rng.choice(["north", "south"]), rng.choice(["no", "yes"])
            lines.append(f"{age:.1f},{dose:.2f},{site},{sick}")
        Path(f"{name}.csv").write_text("\n".join(lines) + "\n")
    return Shell(tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_explained_and_costs_nothing(shell: Shell, mistake: Mistake) -> None:
    if mistake.trained:
        assert shell.train()[0] == 0
    before = charges(shell.folder)
    mistake.prepare(shell.folder)
    code, message = shell(*mistake.words)
    text = " ".join(message.split())
    missing = [piece for piece in mistake.pieces if piece not in text]
    assert not missing, f"{missing} not in: {text}"
    assert code == mistake.code
    assert "Traceback" not in message
    assert charges(shell.folder) == before


def charges(folder: Path) -> int:
    """Reservations and charges in all ledgers of a folder."""
    found = 0
    for path in folder.glob("*.ledger"):
        with Ledger.open(path, create=False) as ledger:
            found += len([line for line in ledger.lines() if line.kind in ("reserve", "charge")])
    return found


def test_there_are_enough_mistakes() -> None:
    names = [mistake.name for mistake in MISTAKES]
    assert len(names) == len(set(names)) >= 20


def test_swapped_columns_just_work(shell: Shell) -> None:
    codes = rows_of("b.csv", SCHEMA).codes
    lines = [line.split(",") for line in Path("b.csv").read_text().splitlines()]
    Path("b.csv").write_text("\n".join(",".join(reversed(line)) for line in lines) + "\n")
    swapped = rows_of("b.csv", SCHEMA).codes
    for j in range(len(SCHEMA.columns)):
        assert np.array_equal(swapped.column(j), codes.column(j))
    assert shell.train()[0] == 0


def test_a_ledger_held_by_a_process_that_was_stopped(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hedgerow.privacy.ledger.store.WAIT_SECONDS", 0.1)
    hold = (
        "import sys; from hedgerow import Ledger; held = Ledger.open('all.ledger'); "
        "block = held.transaction(); block.__enter__(); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()  # it is half-way through a transaction now
        code, message = shell.train("--ledger", "all.ledger")
        other.communicate()
    assert code == 5
    assert "another process has held the ledger for too long" in message
    assert "Nothing" in message
    assert charges(shell.folder) == 0
    assert shell.train("--ledger", "all.ledger")[0] == 0


def test_a_plan_that_was_refused_does_not_stand_in_the_way(shell: Shell) -> None:
    budget = ("--ledger", "all.ledger", "--budget-epsilon", "1")
    assert shell.train(*budget)[0] == 4
    assert not Path("m.hedge.plan.toml").exists()
    smaller = ("--epsilon", "0.9", "--delta", "1e-5")
    assert shell(*TRAIN, *TABLES, *smaller, *budget)[0] == 0


def test_exit_code_0_is_success(shell: Shell) -> None:
    assert shell.train()[0] == 0


def test_exit_code_2_is_a_usage_error(shell: Shell) -> None:
    assert shell("train")[0] == 2
    assert shell.train("--trust", "everyone")[0] == 2


def test_exit_code_3_is_a_refusal(shell: Shell) -> None:
    low = Limits(per_run=Budget(0.5, 1e-5))

    def limited(*arguments: Any) -> Federation:
        return local_federation(*arguments, limits=low)

    shell.patch.setattr("hedgerow.engines.local.local_federation", limited)
    code, message = shell.train()
    assert code == 3
    assert "a refused (over-limits): the plan exceeds the party's own limits" in message
    assert "Nothing was released" in message
    assert "Settle it with a" in message
    with Ledger.open("m.hedge.ledger") as ledger:
        assert not ledger.lines(kind="charge")


def test_exit_code_4_is_the_budget(shell: Shell) -> None:
    code, message = shell.train("--budget-epsilon", "1.9")
    assert code == 4
    assert "over the budget of 1.9 at delta = 1e-05" in message


def test_exit_code_5_can_be_resumed(shell: Shell) -> None:
    observe = Watch.observe

    def stopped(watch: Watch, progress: Progress) -> None:
        watch._stop = progress.slot == 1
        observe(watch, progress)

    shell.patch.setattr(Watch, "observe", stopped)
    code, message = shell.train()
    assert code == 5
    assert "Stopped after slot 2 of 4" in message
    assert "Run the same command again" in message
    shell.patch.setattr(Watch, "observe", observe)
    assert shell.train("--resume")[0] == 0
    with Ledger.open("m.hedge.ledger") as ledger:
        assert len(ledger.lines(kind="release")) == 4


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit.name)
def test_a_mistake_with_the_estimator_costs_nothing(fit: Fit) -> None:
    ledger = Ledger.in_memory()
    table, labels = X if fit.X is None else fit.X, Y if fit.y is None else fit.y
    with pytest.raises(fit.kind) as caught:
        PrivateBoostingClassifier(**{**GOOD, **fit.settings}, ledger=ledger).fit(
            table, labels, fit.parties, **fit.keywords
        )
    for piece in fit.pieces:
        assert piece in str(caught.value)
    assert not [line for line in ledger.lines() if line.kind in ("reserve", "charge")]


def test_the_estimator_without_a_mistake_fits() -> None:
    ledger = Ledger.in_memory()
    PrivateBoostingClassifier(**GOOD, ledger=ledger).fit(X, Y)
    assert ledger.lines(kind="charge")


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        ("save_model", "hedgerow.load(path) brings it back"),
        ("get_booster", "hedgerow.export"),
        ("explain_global", "model.explain()"),
        ("best_iteration", "the plan fixes the rounds"),
        ("epsilon_", "model.statement_"),
        ("colour", "no attribute 'colour'"),
        ("classes_", "not fitted yet"),  # what a property raises is not lost
        ("feature_importances_", "not fitted yet"),
    ],
)
def test_attributes_of_other_libraries_say_what_is_here(name: str, piece: str) -> None:
    model = PrivateBoostingClassifier(**GOOD)
    with pytest.raises(AttributeError) as caught:
        getattr(model, name)
    assert piece in str(caught.value)
    assert not hasattr(model, name)
