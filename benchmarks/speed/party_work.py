"""One fit over many parties of this process, as JSON: its CPU seconds, and what a party does.

Run by `parties.py`, also with the source of an earlier commit: it uses nothing that is newer.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from hedgerow import PrivateBoostingClassifier
from hedgerow.coordinator.transport import Transport
from hedgerow.party.party import Party
from hedgerow.protocol.messages import Message

SECONDS, BYTES, MESSAGES = Counter[str](), Counter[str](), Counter[str]()  # by type of message


def watch() -> None:
    """Count what parties take over messages of each type, and how long these and replies are."""
    hear, handed = Party.hear, Transport._handed

    def timed(self: Party, message: Message) -> Generator[Any, Any, Any]:
        steps, came = hear(self, message), None
        MESSAGES[message.type] += 1
        while True:
            begun = time.thread_time()
            try:
                work = steps.send(came)
            except StopIteration as done:
                return done.value
            finally:
                SECONDS[message.type] += time.thread_time() - begun
            came = yield _timed(work, message.type)

    def counted(self: Transport, engine: Any, messages: dict[str, Message]) -> Any:
        replies = handed(self, engine, messages)
        for name, message in messages.items():
            BYTES[message.type] += message.size_for(name) + replies[name].size  # type: ignore[attr-defined]
        return replies

    Party.hear = timed  # type: ignore[assignment, method-assign]
    Transport._handed = counted  # type: ignore[method-assign]


def _timed(work: Callable[[], Any], type_: str) -> Callable[[], Any]:
    def timed() -> Any:
        begun = time.thread_time()
        try:
            return work()
        finally:
            SECONDS[type_] += time.thread_time() - begun

    return timed


def main(n_rows: int, n_columns: int, n_parties: int, trust: str, repeats: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, n_columns)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    # Told how many rows there are, the method asks the same of few rows and of many.
    model = PrivateBoostingClassifier(
        bounds=(-1, 1), classes=[0, 1], trust=trust, settings={"rows_hint": 40_000}, random_state=0
    )
    few = np.array(["a", "b", "c"])[np.arange(2000) % 3]
    model.fit(X[:2000], y[:2000], parties=few)  # compiles
    names = np.array([f"p{i:05d}" for i in range(n_parties)])[np.arange(n_rows) % n_parties]
    watch()
    cpu = []
    for _ in range(repeats):
        for counter in (SECONDS, BYTES, MESSAGES):
            counter.clear()
        begun = time.process_time()
        model.fit(X, y, parties=names)
        cpu.append(time.process_time() - begun)
    figures = {
        "cpu": min(cpu),
        "rounds": MESSAGES["ask"] / n_parties,
        "round_microseconds": 1e6 * SECONDS["ask"] / MESSAGES["ask"],  # of one party
        "round_bytes": BYTES["ask"] / MESSAGES["ask"],
        "join_microseconds": 1e6 * (SECONDS["open"] + SECONDS["join"]) / n_parties,
        "join_bytes": (BYTES["open"] + BYTES["join"]) / n_parties,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    rows, columns, parties, trust, repeats = sys.argv[1:]
    main(int(rows), int(columns), int(parties), trust, int(repeats))
