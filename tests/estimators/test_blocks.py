"""Fits inside of a ledger's block are charged to it, in threads and processes too."""

from __future__ import annotations

import contextvars
import copy
import math
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import joblib
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from hedgerow import (
    Budget,
    Ledger,
    PrivateBoostingClassifier,
    SimilarityBoostingClassifier,
    Statement,
    evaluate_privately,
)
from hedgerow.coordinator.gate import Gate
from hedgerow.engines.local import local_federation
from hedgerow.errors import BudgetExceeded, LedgerError, SettingsError
from hedgerow.inspection import plot_ledger
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.privacy.ledger.in_force import ledger_in_force
from hedgerow.privacy.ledger.spending import spending
from hedgerow.privacy.settings import Privacy
from tests.attacks.rig import SCHEMA, some_rows
from tests.estimators.test_overlapping import SMALL, X, Y


def estimator(**more: object) -> PrivateBoostingClassifier:
    given = {"bounds": (-1, 1), "classes": [0, 1], "delta": 1e-6, **SMALL, **more}
    return PrivateBoostingClassifier(**given)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.ledger"


def runs_of(path: Path) -> int:
    with Ledger.open(path) as ledger:
        return spending(ledger).runs


def test_fits_and_evaluations_inside_are_charged_and_outside_count_alone(path: Path) -> None:
    with Ledger.open(path, epsilon=4, delta=1e-6) as ledger:
        first = estimator().fit(X, Y)
        second = clone(first).fit(X, Y)
        evaluate_privately(second, X, Y, epsilon=0.5)
        assert [run.method for run in ledger.history()] == ["random-trees"] * 2 + ["evaluation"]
        assert first.statement_.scope == f"run {first.plan_.run}"
        assert ledger_in_force() is ledger
    assert ledger_in_force() is None
    alone = clone(first).fit(X, Y)
    assert alone.statement_.scope == "this fit alone"
    assert "counted for this fit alone" in alone.statement_.words()
    assert runs_of(path) == 3


def test_a_session_inside_is_on_record(path: Path) -> None:
    parties = ["a", "b"] * (len(X) // 2)
    with Ledger.open(path) as ledger:
        SimilarityBoostingClassifier(
            bounds=(-1, 1), classes=[0, 1], n_trees=2, random_state=1, settings={"n_hashes": 1}
        ).fit(X, Y, parties=parties)
        assert len(ledger.lines("coordinator", "disclose")) == 1


def test_threads_inside_are_charged(path: Path) -> None:
    """They are new, so no variable of the block's context reaches them."""
    with Ledger.open(path) as ledger, ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: estimator().fit(X, Y), range(3)))
        assert spending(ledger).runs == 3
        with joblib.parallel_backend("threading", n_jobs=2):
            cross_val_score(estimator(), X, Y, cv=2, error_score="raise")
        assert spending(ledger).runs == 5


def test_processes_inside_are_charged_also_where_they_clone(path: Path) -> None:
    search = GridSearchCV(estimator(), {"n_trees": [2, 3]}, cv=2, error_score="raise")
    with Ledger.open(path) as ledger:
        with joblib.parallel_backend("loky", n_jobs=2):
            cross_val_score(search, X, Y, cv=2, error_score="raise")
        assert spending(ledger).runs == 2 * (2 * 2 + 1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("named", [False, True])
def test_a_forked_process_opens_the_file_for_itself(path: Path, named: bool) -> None:
    with Ledger.open(path) as ledger:
        estimator().fit(X, Y)
        if (child := os.fork()) == 0:
            code = 1
            try:
                estimator(ledger=ledger if named else None).fit(X, Y)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert spending(ledger).runs == 2
        assert ledger.verify()


def test_the_innermost_ledger_and_a_named_one_come_first(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.ledger" for name in "abc"]
    with Ledger.open(paths[0]), Ledger.open(paths[1]), ThreadPoolExecutor(1) as pool:
        estimator().fit(X, Y)
        estimator(ledger=str(paths[2])).fit(X, Y)
        pool.submit(estimator().fit, X, Y).result()
    assert [runs_of(path) for path in paths] == [0, 2, 1]


def test_a_thread_between_two_ledgers_must_say_which_pays(tmp_path: Path) -> None:
    inside, over = threading.Barrier(2), threading.Event()

    def other() -> None:
        with Ledger.open(tmp_path / "b.ledger") as own:
            inside.wait(300)
            estimator().fit(X, Y)
            assert spending(own).runs == 1
            over.wait(300)

    with Ledger.open(tmp_path / "a.ledger") as ledger, ThreadPoolExecutor(2) as pool:
        begun = pool.submit(other)
        inside.wait(300)
        estimator().fit(X, Y)  # this thread has a block of its own
        with pytest.raises(LedgerError, match="does not say which of them pays"):
            pool.submit(estimator().fit, X, Y).result()
        over.set()
        begun.result()
        assert spending(ledger).runs == 1


def test_a_ledger_of_one_fit_is_not_in_force_for_others(path: Path) -> None:
    seen = []
    federation = local_federation({"all": some_rows(40, 0)}, SCHEMA)
    fitted = PrivateBoostingClassifier(SCHEMA, method="random-trees", n_trees=2, ledger=str(path))
    fitted.fit_federation(federation, observe=lambda _: seen.append(ledger_in_force()))
    assert set(seen) == {None}
    assert runs_of(path) == 1


def test_a_block_that_has_ended_is_not_in_force_wherever_it_is_remembered(path: Path) -> None:
    with Ledger.open(path):
        kept = contextvars.copy_context()
    assert kept.run(ledger_in_force) is None


def test_an_estimator_takes_its_ledger_along(path: Path) -> None:
    """In a pickle for another process by its path, in a copy as it is."""
    with Ledger.open(path) as ledger:
        sent = pickle.loads(pickle.dumps(estimator()))  # noqa: S301
        assert sent.ledger == str(path)
        assert pickle.loads(pickle.dumps(estimator(ledger=ledger))).ledger == str(path)  # noqa: S301
        fitted = estimator().fit(X, Y)
        assert pickle.loads(pickle.dumps(fitted)).ledger is None  # noqa: S301
        assert copy.deepcopy(fitted).ledger is None
    path.unlink()
    again = pickle.loads(pickle.dumps(estimator(ledger=str(path))))  # noqa: S301
    assert again.ledger == str(path)
    with Ledger.in_memory() as ledger:
        assert copy.deepcopy(estimator()).ledger is ledger
        with pytest.raises(LedgerError, match="cannot be shared with other processes"):
            pickle.dumps(estimator())


# Budget, totals, statement, picture


def test_a_budget_is_set_once_and_says_what_is_left(path: Path) -> None:
    with Ledger.open(path, epsilon=2.0) as ledger:
        assert ledger.budget == Budget(2.0, 1e-6)
        assert (ledger.spent, ledger.left, ledger.history()) == (0.0, 2.0, [])
        estimator(epsilon=1.5).fit(X, Y)
        assert ledger.spent == pytest.approx(1.5)
        assert ledger.left == pytest.approx(0.5)
        assert ledger.next_run is not None
        assert ledger.next_run > 0.5
        with pytest.raises(BudgetExceeded, match="nothing was spent"):
            estimator(epsilon=1.5).fit(X, Y)
        estimator(epsilon=0.99 * ledger.next_run).fit(X, Y)
        totals = [run.total for run in ledger.history()]
        assert totals == [pytest.approx(1.5), pytest.approx(ledger.spent)]
        assert "epsilon = 2 at delta = 1e-06" in ledger._repr_html_()
    assert "open it again" in ledger._repr_html_()
    with Ledger.open(path, epsilon=2.0, delta=1e-6):
        pass
    with pytest.raises(LedgerError, match="cannot be changed"):
        Ledger.open(path, epsilon=3.0)
    with pytest.raises(SettingsError, match="needs an epsilon"):
        Ledger.open(path, delta=1e-6)
    for epsilon, delta in ((0.0, 1e-6), (-1.0, 1e-6), (math.inf, 1e-6), (1.0, 1.0), (1.0, -1e-9)):
        with pytest.raises(SettingsError, match="is none"):
            Ledger.in_memory(epsilon=epsilon, delta=delta)


def test_without_a_budget_a_ledger_counts_at_the_largest_delta() -> None:
    with Ledger.in_memory() as ledger:
        assert (ledger.delta, ledger.left, ledger.next_run) == (1e-6, None, None)
        estimator(delta=1e-7).fit(X, Y)
        assert ledger.delta == 1e-7
        estimator(delta=1e-5).fit(X, Y)
        assert ledger.delta == 1e-5


def test_a_closed_ledger_says_so(path: Path) -> None:
    with Ledger.open(path) as ledger:
        estimator().fit(X, Y)
    for use in (lambda: ledger.spent, lambda: estimator(ledger=ledger).fit(X, Y), ledger.history):
        with pytest.raises(LedgerError, match="is closed"):
            use()
    ledger.close()  # once more does no harm


def test_the_statement_has_this_fit_and_the_total_of_its_ledger(path: Path) -> None:
    with Ledger.open(path) as ledger:
        first, second, third = (estimator().fit(X, Y).statement_ for _ in range(3))
        total = ledger.history()[1].total
    assert first.ledger_runs == 0
    assert "ledger_runs" not in first.to_dict()
    assert (second.ledger_runs, third.ledger_runs) == (2, 3)
    assert second.ledger_epsilon == pytest.approx(total)
    assert second.epsilon == 1.0 < total
    assert f"2 runs on these rows with this model: together epsilon = {total:.4g}" in second.words()
    assert second.best_guess() < third.best_guess() + 1e-12
    assert Statement.from_dict(third.to_dict()) == third


def test_a_run_that_is_resumed_states_the_same_total() -> None:
    ledger, table = Ledger.in_memory(), {"all": some_rows(40, 0)}
    plans = [
        plan_for(SCHEMA, Privacy(1.0, 1e-6), "random-trees", settings={"n_trees": 2}, seed=i)
        for i in range(3)
    ]

    def trained(i: int) -> Statement:
        federation = local_federation(table, SCHEMA, ledger, trust="coordinator")
        return method_named("random-trees").grow(Gate(federation, plans[i], ledger)).statement

    stated = [trained(i) for i in range(3)]
    assert [trained(i) for i in range(3)] == stated
    assert [one.ledger_runs for one in stated] == [0, 2, 3]


def test_the_picture_shows_every_run_and_the_budget(path: Path) -> None:
    with Ledger.open(path, epsilon=3, delta=1e-6) as ledger:
        assert "0 runs" in plot_ledger(ledger).svg
        for _ in range(3):
            estimator().fit(X, Y)
        picture = plot_ledger(ledger)
    root = ElementTree.fromstring(picture.svg)
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "budget 3" in texts
    below = texts[texts.index("epsilon of all runs so far") + 1 :]
    assert below[:3] == ["1", "2", "3"]  # the runs
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 3
    assert "Epsilon spent over 3 runs at delta = 1e-06" in picture.svg
