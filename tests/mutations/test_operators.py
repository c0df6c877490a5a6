"""The planted defects of `make mutants`: each changes one place, and every target is there."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.mutations.campaign import EQUIVALENT, ROOT, chosen, file_of
from tests.mutations.operators import mutants, mutated
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


@pytest.mark.parametrize("module", TARGETS)
def test_every_target_is_there_and_has_defects_to_plant(module: str) -> None:
    assert list(mutants(module, file_of(module).read_text("utf-8")))
    for test in TARGETS[module]:
        assert (ROOT / test).exists(), test


def test_tests_and_reasons_are_of_what_exists() -> None:
    for test in WIDE:
        assert (ROOT / test).exists(), test
    names = {
        one.name
        for module in TARGETS
        for one in mutants(module, file_of(module).read_text("utf-8"))
    }
    reasons = tomllib.loads(EQUIVALENT.read_text("utf-8"))["reasons"]
    assert {*reasons} <= names, f"no such defect any more: {reasons.keys() - names}"
    planted = chosen(330)
    assert len({one.name for one in planted}) == len(planted) == 330


def test_a_planted_defect_is_noticed_and_an_unchanged_module_is_not(tmp_path: Path) -> None:
    program = f"""
import importlib, time
from pathlib import Path
from tests.mutations import campaign
from tests.mutations.operators import Mutant, mutants

module = "hedgerow.model.trust"
campaign.TARGETS[module] = ("tests/model/test_trust.py",)
found = mutants(module, campaign.file_of(module).read_text("utf-8"))
defect = next(one for one in found if one.before == "colluding + 1")
for one in (Mutant(module, 0, "none", "", "", -1), defect):
    running = campaign.start(one, Path({str(tmp_path)!r}), wide=False)
    while (code := running.ended()) is None:
        time.sleep(0.05)
    print(code, campaign.noticed_by(running.output.read_text("utf-8"), code))
"""
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600).stdout
    control, planted = said.splitlines()
    assert control.strip() == "0"
    assert planted.startswith("1 tests/model/test_trust.py::")
