"""Keys that a party has seen of others: an older one does not come back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.handshake import PartyHandshake
from hedgerow.protocol.identity import Announcement, Identity
from hedgerow.protocol.joined import Joined
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Refusal


def _announced(boot: int) -> Joined:
    return Joined({"b": Announcement("b", boot, 1, MaskKeys().public, "p", "s", "r")})


OLD, NEW = _announced(4), _announced(5)


def _handshake(ledger: Ledger, lasts: bool = True) -> PartyHandshake:
    return PartyHandshake("a", "s", Identity(), MaskKeys(), ledger, lasts)


@pytest.mark.parametrize("lasts", [True, False])
def test_an_older_key_and_another_one_of_the_same_start_are_not_taken(lasts: bool) -> None:
    one = _handshake(Ledger.in_memory(), lasts)
    one.accept(NEW)
    for refused in (OLD, _announced(5)):
        with pytest.raises(Refusal, match="mask key is missing, old"):
            one.accept(refused)
    one.accept(NEW)


def test_a_party_that_lasts_knows_after_a_restart_which_keys_are_old() -> None:
    ledger = Ledger.in_memory()
    _handshake(ledger).accept(NEW)
    with pytest.raises(Refusal, match="mask key is missing, old"):
        _handshake(ledger).accept(OLD)


def test_the_last_key_on_a_shared_ledger_is_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes of a party have heard from another before and after its restart."""
    lines, both, written = Ledger.lines, threading.Barrier(2), threading.Event()

    def looking(self: Ledger, *about: Any, **further: Any) -> Any:
        found = lines(self, *about, **further)
        if "peer" in about:
            with suppress(threading.BrokenBarrierError):  # both have looked, or one is held back
                both.wait(timeout=1)
            if self is ledgers[1]:
                written.wait(timeout=1)  # the older one comes last, if nothing is in its way
        return found

    ledgers = [Ledger.open(tmp_path / "a.ledger") for _ in range(2)]
    ones = [_handshake(ledger) for ledger in ledgers]
    monkeypatch.setattr(Ledger, "lines", looking)
    with ThreadPoolExecutor(2) as pool:
        newer = pool.submit(ones[0].accept, NEW)
        older = pool.submit(ones[1].accept, OLD)
        newer.result()
        written.set()
        with suppress(Refusal):  # it was first, or it is refused
            older.result()
    monkeypatch.undo()
    with pytest.raises(Refusal, match="mask key is missing, old"):
        ones[0].accept(OLD)
    for ledger in ledgers:
        ledger.close()
