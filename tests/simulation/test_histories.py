"""Whole histories: every rule holds, the same seed is the same history, campaigns go on."""

from __future__ import annotations

import json
import os
import random
import secrets
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hedgerow.errors import FormatError
from hedgerow.methods.registry import METHODS as REGISTERED
from hedgerow.protocol import identity, masks, messages, witnesses
from hedgerow.protocol.identity import Announcement, Identity
from hedgerow.protocol.messages import Message
from hedgerow.testing.simulation import simulate
from hedgerow.testing.simulation.__main__ import main
from hedgerow.testing.simulation.campaign import run_campaign, shrink
from hedgerow.testing.simulation.disk import SimulatedConnection
from hedgerow.testing.simulation.randomness import Dice, secrets_from
from hedgerow.testing.simulation.reading import read_once
from hedgerow.testing.simulation.record import Record
from hedgerow.testing.simulation.scenarios import _BY_COORDINATOR, METHODS, RARE_METHODS
from hedgerow.testing.simulation.source import Source, source_hash, this_source
from hedgerow.testing.simulation.tally import Failure, Tally, median
from tests.simulation.defects import planted
from tests.slow import ALL

SEEDS = range(900_000, 900_000 + (2_000 if ALL else 40))
# Seeds that broke a rule once, all by what the simulator itself did: a command came again before a
# settled party was started again; a party sealed the same text with the key of its next process;
# another process charged while a ledger was being compared with what had been asked; a roster was
# pinned in a process that still had its machine's old key; a flood of messages used up the time
# that parties have to start again; an operator whose clock was ahead approved what had ended.
FOUND = (
    1_795_021_515_146, 1_795_040_478_159, 1_009_780, 1_009_407, 2_001_488, 3_006_242,
)  # fmt: skip


@pytest.mark.parametrize("first", SEEDS[::20])
def test_every_rule_holds(first: int) -> None:
    broken = {seed: simulate(seed).violations for seed in range(first, first + 20)}
    assert {seed: found for seed, found in broken.items() if found} == {}


@pytest.mark.parametrize("seed", FOUND)
def test_no_seed_breaks_a_rule_twice(seed: int) -> None:
    assert simulate(seed).violations == []


def traced(seed: int, hash_seed: str) -> str:
    command = [sys.executable, "-m", "hedgerow.testing.simulation", "--seed", str(seed), "--trace"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_seed_is_the_same_history_in_every_process() -> None:
    told = traced(17, "1")
    assert told == traced(17, "4242")
    outcome = simulate(17)  # after other histories of this process
    assert told.splitlines()[:-1] == outcome.trace


def test_nothing_is_replaced_once_a_history_has_ended() -> None:
    places = [
        (os, "urandom"), (random, "_urandom"), (secrets, "token_bytes"),
        (identity, "Ed25519PrivateKey"), (masks, "X25519PrivateKey"),
        (Message, "from_bytes"), (Announcement, "from_dict"),
        (messages, "signed_by"), (witnesses, "signed_by"),
    ]  # fmt: skip
    before = [getattr(owner, name) for owner, name in places]
    simulate(3)
    assert [getattr(owner, name) for owner, name in places] == before
    assert identity.Identity().public != identity.Identity().public


def test_signatures_that_a_history_remembers_are_those_that_verify() -> None:
    verify = identity.signed_by
    with secrets_from(Dice(1, "test")):
        ash, birch = identity.Identity(), identity.Identity()
        signature = ash.sign(b"a message")
        other = "00" * 64
        for public, message, signed, holds in (
            (ash.public, b"a message", signature, True),
            (ash.public, b"another", signature, False),
            (birch.public, b"a message", signature, False),
            (ash.public, b"a message", other, False),
        ):
            assert messages.signed_by(public, message, signed) is holds
            assert verify(public, message, signed) is holds


def test_the_same_bytes_are_read_once_and_unreadable_ones_never() -> None:
    sent = messages.plain("ready", {"run": "run-1"}).to_bytes()
    with read_once():
        assert Message.from_bytes(sent) is Message.from_bytes(bytes(bytearray(sent)))
        for _ in range(2):
            with pytest.raises(FormatError):
                Message.from_bytes(sent[:-1])
    assert Message.from_bytes(sent) is not Message.from_bytes(sent)


def test_equal_announcements_are_read_once_and_wrong_ones_are_refused() -> None:
    mine = Announcement("ash", 1, 1, "aa" * 32, "plan", "schema", "roster").signed(Identity())
    with read_once():
        known = Announcement.from_dict(mine.to_dict())
        assert known == mine
        assert Announcement.from_dict(mine.to_dict()) is known
        for wrong in ({"boot": True}, {"boot": 1.0}, {"name": ["ash"]}, {"more": 1}):
            with pytest.raises(FormatError):
                Announcement.from_dict({**mine.to_dict(), **wrong})
    assert Announcement.from_dict(mine.to_dict()) is not known


def test_every_method_is_drawn() -> None:
    drawn = {*METHODS, *RARE_METHODS, *_BY_COORDINATOR, "ldp"}
    assert drawn == set(REGISTERED)


def test_what_a_connection_reads_again_is_what_sqlite_would_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known_rows, compared = SimulatedConnection._known_rows, 0

    def checked(self: SimulatedConnection, sql: str, parameters: tuple[object, ...]) -> object:
        nonlocal compared
        rows = known_rows(self, sql, parameters)
        if rows is not None:
            compared += 1
            assert self._run(sql, parameters) == rows
        return rows

    monkeypatch.setattr(SimulatedConnection, "_known_rows", checked)
    for seed in (*range(8), 13, 37):  # two of them with several processes on one ledger
        assert simulate(seed).violations == []
    assert compared > 1_000


def test_a_failing_history_is_shrunk_to_the_faults_that_it_needs() -> None:
    with planted("spare not counted"):
        broken = ((seed, found) for seed in range(400) if (found := simulate(seed)).violations)
        shrunken = ((seed, found, *shrink(seed, found)) for seed, found in broken)
        seed, outcome, faults, shrunk = next(  # some histories need all of their faults
            found for found in shrunken if len(found[2]) < len(found[1].happened)
        )
        assert shrunk.violations
        assert simulate(seed, faults).violations == shrunk.violations
        for place in range(len(faults)):  # none of those left can be left out
            fewer = faults[:place] + faults[place + 1 :]
            rule = outcome.violations[0].partition(":")[0]
            assert not any(one.startswith(rule) for one in simulate(seed, fewer).violations)


def test_a_campaign_goes_on_where_it_ended(tmp_path: Path) -> None:
    result, said = tmp_path / "result.json", list[str]()
    run_campaign(2, 3, result=result, say=said.append)
    resumed = run_campaign(0, 8, result=result, say=said.append).total
    assert json.loads(result.read_text())["seeds"] == [[0, 8]]
    whole = run_campaign(0, 8, say=said.append).total
    assert (resumed.histories, resumed.counts) == (8, whole.counts)
    again = run_campaign(0, 8, result=result, say=said.append).total
    assert (again.histories, again.counts) == (8, whole.counts)
    assert said == []
    with pytest.raises(SystemExit, match="another campaign"):
        run_campaign(0, 8, result=result, backups=True)


def another_source() -> Source:
    return replace(this_source(), hash="another", commit="")


def test_a_record_says_which_seeds_ran_on_which_source(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    earlier, tally = Record(False), Tally(histories=3)
    tally.failures = [Failure(5, ["a rule: broken"], ["none"])]
    earlier.add(another_source(), 4, 7, tally)
    earlier.write(result)
    assert json.loads(result.read_text())["failures"][0]["source"] == "another"
    record = run_campaign(3, 5, result=result, say=lambda _: None)
    assert [(part.source.hash, part.seeds) for part in record.parts] == [
        ("another", [[4, 7]]),
        (this_source().hash, [[3, 4], [7, 8]]),
    ]
    (failure,) = record.total.failures  # looked at again on this source
    assert (failure.source, failure.mended) == ("another", this_source().hash)
    assert Record.read(result, False).to_dict() == record.to_dict()
    assert record.total.histories == sum(part.histories for part in record.parts) == 5


def test_the_source_is_named_by_all_that_histories_run(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x = 1\n")
    first = source_hash(tmp_path)
    (tmp_path / "notes.md").write_text("no code")
    assert source_hash(tmp_path) == first
    (tmp_path / "one.py").write_text("x = 2\n")
    second = source_hash(tmp_path)
    (tmp_path / "one.py").rename(tmp_path / "two.py")
    assert len({first, second, source_hash(tmp_path)}) == 3
    assert not another_source().is_same(this_source())
    assert replace(this_source(), commit="abc").is_same(this_source())


def test_a_campaign_counts_what_its_histories_did() -> None:
    total, outcomes = Tally(), [simulate(seed) for seed in range(6)]
    for outcome in outcomes:
        total.add(outcome)
    found = total.to_dict()
    assert found["histories"] == 6
    assert found["faults"] == sum(len(outcome.happened) for outcome in outcomes)
    assert Tally.from_dict(found).to_dict() == found
    assert median(total.faults) == sorted(len(outcome.happened) for outcome in outcomes)[2]


def test_the_command_says_what_a_history_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5"]) == 0
    assert "seed 5: " in capsys.readouterr().out
    assert main(["--seeds", "2", "--first", "7"]) == 0
    assert "2 histories" in capsys.readouterr().out
    with planted("charge after ask"):
        assert main(["--seed", "0"]) == 1
    assert "nobody is asked before the coordinator's charge" in capsys.readouterr().out
