"""Do both ends of a stream survive any frames, before and after the hello? 100,000 by default.

A third are hellos of a stranger, mangled or made up, each on a stream of its own over TLS; a third
are frames of a party that said hello; a third are made-up messages that a hostile coordinator sends
to an honest party. A stranger must be told nothing, whatever is not allowed may end its own stream
alone, an honest party beside them must be answered all the time, and nothing may reach a ledger.
Prints counts and the memory of the process, and writes benchmarks/results/stream_fuzz.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import struct
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.wire_fuzz import mangled  # noqa: E402
from tests.attacks.rig import Rig as PartyRig  # noqa: E402
from tests.engines.grpc.rig import RawStream, Rig, until  # noqa: E402
from tests.engines.grpc.test_hello import binding_of, hello_of  # noqa: E402

import hedgerow.engines.grpc  # noqa: E402, F401
from hedgerow.engines.grpc import hello as hellos  # noqa: E402
from hedgerow.engines.grpc.pieces import PIECE_BYTES, pieces_of  # noqa: E402
from hedgerow.errors import HedgerowError  # noqa: E402

RESULT = Path(__file__).parent / "results" / "stream_fuzz.json"


class Hostile:
    """A party's stream that says hello and then whatever it is given; dials again when it ends."""

    def __init__(self, rig: Rig) -> None:
        self._rig, self._boot, self.ended = rig, 0, 0
        self._dial()

    def _dial(self) -> None:
        self._boot += 1
        self._stream = RawStream(self._rig)
        hello = hello_of(self._rig, "p0", self._boot)
        binding = binding_of(self._rig, self._stream)
        self._stream.say(hellos.to_frame(hello.signed(self._rig.identities["p0"], binding)))
        assert self._stream.hear() is not None

    def say(self, frame: bytes, ends: bool) -> None:
        self._stream.say(frame)
        if ends:
            assert self._stream.hear() is None
            self._stream.close()
            self.ended += 1
            self._dial()

    def close(self) -> None:
        self._stream.close()


def frame_of(rng: np.random.Generator) -> tuple[bytes, bool]:
    """A frame, and whether it must end the stream."""
    how = int(rng.integers(4))
    if how == 0:  # a whole message that nobody waits for
        return next(pieces_of(int(rng.integers(2**62)), rng.bytes(int(rng.integers(200))))), False
    if how == 1:  # a short piece that is not the last
        return struct.pack("<BQ", 0, 1) + rng.bytes(int(rng.integers(100))), True
    if how == 2:  # a flag that there is not
        return bytes([int(rng.integers(2, 256))]) + rng.bytes(int(rng.integers(8, 300))), True
    return struct.pack("<BQ", 1, 1) + bytes(PIECE_BYTES + 1 + int(rng.integers(1000))), True


def still_signed(frame: bytes, rig: Rig, binding: hellos.Binding) -> bool:
    """Whether the party did say it: letters of a hexadecimal number may be large, for example."""
    try:
        hello = hellos.read_hello(frame)
        return not hellos.Members(rig.roster).judge(hello, binding)
    except HedgerowError:
        return False


def as_stranger(rig: Rig, rng: np.random.Generator) -> None:
    stream = RawStream(rig)
    binding = binding_of(rig, stream)
    real = hellos.to_frame(hello_of(rig, "p1", 10**6).signed(rig.identities["p1"], binding))
    frame = real
    while still_signed(frame, rig, binding):
        frame = mangled(rng, [real]) if rng.integers(2) else rng.bytes(int(rng.integers(600)))
    stream.say(frame)
    assert stream.hear() is None, "a stranger was told something"
    stream.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rng, parties = np.random.default_rng(options.seed), PartyRig()
    party, ledger = parties.parties["a"], parties.ledgers["a"]
    rig = Rig(("p0", "p1", "p2"))
    rig.handlers["p2"] = party.handle
    rig.connect("p1", "p2")
    lines, hostile, counts = len(ledger.lines()), Hostile(rig), Counter[str]()
    started, before = time.monotonic(), memory()
    for case in range(options.cases):
        kind = ("stranger", "party", "coordinator")[case % 3]
        counts[kind] += 1
        if kind == "stranger":
            as_stranger(rig, rng)
        elif kind == "party":
            hostile.say(*frame_of(rng))
        else:
            reply = rig.ask(["p2"], rng.bytes(int(rng.integers(300))), 60.0)["p2"]
            assert reply.body is not None, reply.problem
        if case % 100 == 0:
            assert rig.ask(["p1"], b"x", 60.0)["p1"].body == b"echo x"
            until(lambda: "p1" in rig.server.connected())
    assert len(ledger.lines()) == lines, "a frame reached the ledger"
    values = {
        "command": " ".join(["python benchmarks/stream_fuzz.py", *sys.argv[1:]]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "cases": dict(counts),
        "seconds": round(time.monotonic() - started, 1),
        "streams_of_the_hostile_party_that_ended": hostile.ended,
        "strangers_turned_away": rig.server.turned_away,
        "ledger_lines_added": len(ledger.lines()) - lines,
        "peak_memory_mb": {"before": before, "after": memory()},
    }
    hostile.close()
    rig.close()
    options.out.write_text(json.dumps(values, indent=1) + "\n")
    print(json.dumps(values, indent=1))


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
