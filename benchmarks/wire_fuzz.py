"""Does a party survive any bytes? Sends it mangled and made-up messages, 100,000 by default.

A third are real messages of a run with bytes changed, cut, doubled or swapped; a third are made up;
a third come from a hostile coordinator: a mangled body under a valid signature. The party must
reply to each with a signed message. Bytes without a valid signature may not cost one charge; what
the hostile coordinator gets answered must be charged, within the plan: the ledger is verified at
the end, and an honest question is still answered. Prints counts, and writes
benchmarks/results/wire_fuzz.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.attacks.rig import Rig, word  # noqa: E402

from hedgerow.errors import HedgerowError  # noqa: E402
from hedgerow.protocol import messages  # noqa: E402
from hedgerow.protocol.messages import Message  # noqa: E402

RESULT = Path(__file__).parent / "results" / "wire_fuzz.json"


def mangled(rng: np.random.Generator, originals: list[bytes]) -> bytes:
    """Real bytes, changed in one of several ways."""
    data = bytearray(originals[rng.integers(len(originals))])
    how = rng.integers(6)
    if how == 0:  # some bytes
        for _ in range(rng.integers(1, 9)):
            data[rng.integers(len(data))] = rng.integers(256)
    elif how == 1:  # one bit
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    elif how == 2:  # cut
        del data[rng.integers(len(data)) :]
    elif how == 3:  # a piece twice, or missing
        start, stop = sorted(rng.integers(len(data), size=2))
        data[start:stop] = data[start:stop] * int(rng.integers(0, 3))
    elif how == 4:  # the head of one and the tail of another
        other = originals[rng.integers(len(originals))]
        data = data[: rng.integers(len(data))] + other[rng.integers(len(other)) :]
    else:  # a number in the header
        start = int(rng.integers(min(len(data), 400)))
        data[start : start + 1] = str(rng.integers(-(2**40), 2**40)).encode()
    return bytes(data)


def real_messages(rig: Rig) -> list[Message]:
    """What an honest coordinator would send to a party of the rig."""
    opening = messages.plain("open", {"plan": rig.plan.to_dict(), "roster": rig.roster.hash})
    probe = messages.plain("ready", {"run": rig.plan.run})
    asks = [Message("ask", rig.question(attempt=attempt).body()) for attempt in (1, 2)]
    return [opening, probe, *asks]


def still_signed(data: bytes, rig: Rig) -> bool:
    """Whether what was signed is untouched, so that the coordinator did say it."""
    try:
        return Message.from_bytes(data).is_signed_by(rig.coordinator.public)
    except HedgerowError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rng, rig = np.random.default_rng(options.seed), Rig(spare=2)
    party, ledger = rig.parties["a"], rig.ledgers["a"]
    originals = real_messages(rig)
    sent = [message.signed(rig.coordinator).to_bytes() for message in originals]
    bodies, types = [m.body for m in originals], [m.type for m in originals]
    first = party.handle(sent[2])
    replies: dict[str, Counter[str]] = {"changed": Counter(), "made up": Counter()}
    replies["signed"] = Counter()
    free = 0  # charges that unsigned bytes caused
    started = time.monotonic()
    for case in range(options.cases):
        kind = ("changed", "made up", "signed")[case % 3]
        before = len(ledger.lines(kind="charge"))
        if kind == "changed":
            data = mangled(rng, sent)
        elif kind == "made up":
            data = rng.bytes(int(rng.integers(0, 300)))
        else:
            hostile = Message(str(rng.choice(types)), mangled(rng, bodies))
            data = hostile.signed(rig.coordinator).to_bytes()
        reply = Message.from_bytes(party.handle(data))
        assert reply.is_signed_by(party.identity.public), "a reply without a signature"
        replies[kind][word(reply)] += 1
        if not still_signed(data, rig):
            free += len(ledger.lines(kind="charge")) - before
    seconds = time.monotonic() - started
    rig.check_books()  # everything answered was charged, once, within the plan
    assert party.handle(sent[2]) == first, "the honest question is answered otherwise now"
    assert free == 0, f"{free} charges without the coordinator's signature"
    values = {
        "command": " ".join(["python benchmarks/wire_fuzz.py", *sys.argv[1:]]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "cases": options.cases,
        "seconds": round(seconds, 1),
        "replies": {kind: dict(found.most_common()) for kind, found in replies.items()},
        "charges_from_unsigned_bytes": free,
        "charges_in_all": len(ledger.lines(kind="charge")),
        "charges_the_plan_allows": rig.plan.n_slots + rig.plan.privacy.spare,
    }
    options.out.write_text(json.dumps(values, indent=1) + "\n")
    print(json.dumps(values, indent=1))


if __name__ == "__main__":
    main()
