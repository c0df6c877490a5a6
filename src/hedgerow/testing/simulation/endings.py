"""What must hold of a history once all of its commands have ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hedgerow.coordinator.refused import RefusedBy
from hedgerow.errors import BudgetExceeded, PlanError, SlotSpent
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.testing.simulation.commands import Attempted, replayed, same_result
from hedgerow.testing.simulation.faults import COORDINATOR
from hedgerow.testing.simulation.scenarios import REGRESSION, Scenario, undisturbed
from hedgerow.testing.simulation.setting import Setting


def expected(scenario: Scenario, plan: Plan | None) -> Ensemble:
    """The model of the same run with nothing going wrong, without noise."""
    assert plan is not None
    regression = scenario.schema is REGRESSION
    about = (regression, plan.seed, plan.privacy.spare)
    return undisturbed(plan.method, scenario.parties, scenario.trust, *about)


def check_end(setting: Setting, commands: Sequence[Attempted]) -> None:
    """What must hold once all commands have ended."""
    ledger = Ledger.open(Path(setting.coordinator.file))
    for command in commands:
        plan = command.work.plan
        if plan is not None:
            setting.rules.stored(ledger, plan)
        if not setting.world.record.happened:
            _check_undisturbed(setting, command)
        if command.finished:
            setting.world.count("finished")
            _check_result(setting, command, ledger)
    setting.rules.check_ledger(COORDINATOR, ledger)
    ledger.close()
    setting.rules.end(setting.parties)
    for line in [line for line in setting.world.record.trace if " log: " in line]:
        setting.rules.check_words(line[28:], "log")


def _check_undisturbed(setting: Setting, command: Attempted) -> None:
    """Where nothing goes wrong, nothing is lost: a command ends at once, or people stop it."""
    others = [error for error in command.troubles if not needs_person(error)]
    what = f"{command.work.run}: {type(others[0]).__name__}: {others[0]}" if others else ""
    setting.world.require(not others, "nothing is lost where nothing goes wrong", what)
    spares = setting.world.record.counts["further attempt"]
    setting.world.require(not spares, "nothing is lost where nothing goes wrong", "an attempt")


def is_final(error: BaseException | None) -> bool:
    """Whether the message says that the same command will not do it."""
    if isinstance(error, RefusedBy):
        return error.is_final or error.word in ("over-limits", "not-allowed", "some-columns")
    return isinstance(error, BudgetExceeded | SlotSpent | PlanError)


def needs_person(error: BaseException | None) -> bool:
    """Whether it names what a person has to decide, though nothing is wrong."""
    return is_final(error) or (isinstance(error, RefusedBy) and error.word == "not-approved")


def _check_result(setting: Setting, command: Attempted, ledger: Ledger) -> None:
    """The same again from the ledger; and what an undisturbed run gives, if all took part."""
    plan, result = command.work.plan, command.result
    if plan is None:
        if command.tries > 1:
            setting.world.count("session begun again")
        return
    lost = _slots_lost(ledger, plan.run)
    stored = {line.slot for line in ledger.lines(COORDINATOR, "release", plan.run)}
    kept = stored >= command.slots or COORDINATOR in setting.rules.restored
    setting.world.require(kept, "what a model is made of is stored first", plan.run)
    if stored > command.slots:
        setting.world.count("resumed")
    if lost:
        setting.world.count("finished without a release")
    if COORDINATOR not in setting.rules.restored and not lost:
        again = replayed(
            command.work, setting.scenario, setting.coordinator, setting.roster, ledger
        )
        same = same_result(result, again)
        setting.world.require(same, "a resumed run gives the same model", plan.run)
    sums = [parties for key, (parties, *_) in setting.rules.sums.items() if key[0] == plan.run]
    whole = all(parties == setting.scenario.parties for parties in sums)
    if isinstance(result, Ensemble):
        _check_attendance(setting, command, result)
        plain = not lost and not setting.scenario.noise and not _cheaper(ledger, plan.run)
        if whole and plain and not setting.rules.restored:
            same = result.trees == expected(setting.scenario, plan).trees
            setting.world.require(same, "the model is that of an undisturbed run", plan.run)
            setting.world.count("equal to an undisturbed run")


def _slots_lost(ledger: Ledger, run: str) -> int:
    charged = {line.slot for line in ledger.lines(COORDINATOR, "charge", run)}
    released = {line.slot for line in ledger.lines(COORDINATOR, "release", run)}
    return len(charged - released)


def _cheaper(ledger: Ledger, run: str) -> bool:
    """Whether a release comes from a further attempt that paid less than the first.

    Its stated noise is wider then, and a method that shrinks by stated noise makes another model of
    it, even where the noise itself is switched off.
    """
    charges = ledger.lines(COORDINATOR, "charge", run)
    paid = {
        (line.slot, line.attempt): {k: v for k, v in line.values.items() if k != "request"}
        for line in charges
    }
    released = [(line.slot, line.attempt) for line in ledger.lines(COORDINATOR, "release", run)]
    return any(paid[slot, 1] != paid[slot, attempt] for slot, attempt in released)


def _check_attendance(setting: Setting, command: Attempted, model: Ensemble) -> None:
    """A party that fell out is named in the model, with the releases that went without it."""
    said = model.record.get("attendance", {}).get("over", [])
    over = Counter({tuple(one["parties"]): one["releases"] for one in said})
    same = over == Counter(command.parties)
    setting.world.require(same, "the model says who took part", command.work.run)
    if any(parties != setting.scenario.parties for parties in command.parties):
        setting.world.count("went on without a party")
