"""The planted defects of `make mutants`: each changes one place, and every target is there."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.campaign import EQUIVALENT, chosen
from tests.mutations.named import named_defects
from tests.mutations.operators import Mutant, extent, mutants, mutated
from tests.mutations.reach import ROOT, file_of
from tests.mutations.targets import TARGETS, WIDE

SOURCE = '''
"""Doc 1."""
LIMIT: int = 3

def price(mu: float, parties: int = 2) -> float:
    """Doc 2."""
    if mu <= 0 and not parties:
        raise ValueError(f"{mu + 1} is below {0}")
    charge(mu)
    log.info("told %d", 7)
    return max(mu * 2.5, LIMIT) ** 2
'''
EXPECTED = [
    ("check removed", "mu <= 0 and (not parties)", "False"),
    ("comparison", "mu <= 0", "mu < 0"),
    ("logic", "mu <= 0 and (not parties)", "mu <= 0 or not parties"),
    ("logic", "not parties", "not not parties"),
    ("constant", "0", "1"),
    ("constant", "2", "3"),
    ("constant", "3", "4"),
    ("constant", "2", "3"),
    ("constant", "2.5", "5.0"),
    ("call removed", "charge(mu)", "None"),
    ("function", "max", "min"),
    ("arithmetic", "mu * 2.5", "mu / 2.5"),
    ("arithmetic", "max(mu * 2.5, LIMIT) ** 2", "max(mu * 2.5, LIMIT) * 2"),
]


def test_each_operator_changes_what_it_says_and_leaves_words_alone() -> None:
    found = list(mutants("m", SOURCE))
    assert sorted((one.operator, one.before, one.after) for one in found) == sorted(EXPECTED)


def test_a_mutant_differs_from_its_module_in_one_place() -> None:
    whole = ast.unparse(ast.parse(SOURCE)).splitlines()
    for one in mutants("m", SOURCE):
        changed = ast.unparse(mutated(SOURCE, one)).splitlines()
        assert len(changed) == len(whole)
        assert sum(a != b for a, b in zip(changed, whole, strict=True)) == 1, one.name


@pytest.mark.parametrize("defect", named_defects(), ids=lambda one: one.label)
def test_the_source_still_has_what_a_named_defect_changes(defect: Mutant) -> None:
    source = file_of(defect.module).read_text("utf-8")
    assert source.count(defect.before) == 1
    assert defect.module in TARGETS
    changed, _, runs_later = ast.unparse(mutated(source, defect)), *extent(source, defect)[1:]
    assert changed != ast.unparse(ast.parse(source))
    assert runs_later or "NAME = " in defect.before


@pytest.mark.parametrize("module", TARGETS)
def test_every_target_is_there_and_has_defects_to_plant(module: str) -> None:
    assert list(mutants(module, file_of(module).read_text("utf-8")))
    for test in TARGETS[module]:
        assert (ROOT / test).exists(), test


def test_tests_and_reasons_are_of_what_exists() -> None:
    for test in WIDE:
        assert (ROOT / test).exists(), test
    planted = chosen(400)
    assert len({one.name for one in planted}) == len(planted) == 400
    assert len({one.module for one in planted}) == len(TARGETS)


def test_every_defect_without_a_test_that_notices_has_a_reason() -> None:
    """Survivors stay below 2 % of what is not equivalent, in the campaign that was recorded."""
    found = json.loads((ROOT / "benchmarks" / "results" / "mutants.json").read_text("utf-8"))
    verdicts = Counter(one["verdict"] for one in found["mutants"])
    reasons = tomllib.loads(EQUIVALENT.read_text("utf-8"))["reasons"]
    equal = {
        one["name"]: one["reason"] for one in found["mutants"] if one["verdict"] == "equivalent"
    }
    assert equal == reasons
    assert found["counts"] == {"mutants": len(found["mutants"]), **verdicts}
    assert verdicts["survived"] < 0.02 * (verdicts["survived"] + verdicts["noticed"])


PLACES = {
    "3": (3, 3, False),  # a setting is there at import
    "mu <= 0": (7, 7, True),
    "mu * 2.5": (11, 11, True),
    "n + 1": (15, 15, False),
}
COMPILED = (
    SOURCE
    + """
@compiled(error_model="numpy")
def loop(n: int) -> int:
    return n + 1
"""
)


def test_where_a_defect_stands_says_which_tests_can_see_it() -> None:
    """Compiled loops and what stands outside of functions is in no test's trace of lines."""
    found = {one.before: extent(COMPILED, one) for one in mutants("m", COMPILED)}
    assert {text: found[text] for text in PLACES} == PLACES


def test_a_planted_defect_is_noticed_and_an_unchanged_module_is_not(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from tests.mutations import campaign
from tests.mutations.operators import Mutant, mutants
from tests.mutations.reach import file_of

module = "hedgerow.model.trust"
found = mutants(module, file_of(module).read_text("utf-8"))
defect = next(one for one in found if one.before == "colluding + 1")
for one in (Mutant(module, 0, campaign.NO_DEFECT, "", "", -1), defect):
    running = campaign.start(one, Path({str(tmp_path)!r}), [["tests/model/test_trust.py"]])
    code = campaign.wait_for(running)
    print(code, campaign.noticed_by(running.output.read_text("utf-8"), code))
"""
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600).stdout
    control, planted = said.splitlines()
    assert control.startswith("0")
    assert planted.startswith("1 tests/model/test_trust.py::")
