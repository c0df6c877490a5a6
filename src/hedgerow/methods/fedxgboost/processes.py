"""Processes of our own for arithmetic on large numbers, which holds Python's lock.

A job is bytes and its answer is bytes; nothing is pickled, and nothing is kept between jobs. The
processes are started by the interpreter's own name, not by `multiprocessing`: so they may be used
inside daemons, and a script that uses them needs no guard. They end when their input ends, hence
with the process that started them, however that ended.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO

from hedgerow.errors import FormatError, SessionFailed
from hedgerow.methods.fedxgboost.paillier_jobs import done_job, read_frame, write_frame

SECONDS_TO_END = 10.0


class Processes:
    """As many processes as said, or none for 1: then jobs are done where they are asked for.

    They start with the first jobs that are more than one.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = max(1, count if count is not None else len(os.sched_getaffinity(0)))
        self._started: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def map(self, jobs: Sequence[bytes]) -> list[bytes]:
        """The answers to all jobs, in their order."""
        if self.count == 1 or len(jobs) < 2:
            return [_checked(done_job(job)) for job in jobs]
        with self._lock:  # a process does one job at a time
            while len(self._started) < self.count:
                self._started.append(_started())
            answers: list[bytes | BaseException] = [b""] * len(jobs)
            numbers = iter(range(len(jobs)))
            threads = [
                threading.Thread(target=_feed, args=(process, jobs, numbers, answers), daemon=True)
                for process in self._started[: len(jobs)]
            ]
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            except BaseException:
                self._end(at_once=True)  # else an answer to this would be read as one to the next
                raise
            if any(isinstance(answer, BaseException) for answer in answers):
                self._end(at_once=True)
        found = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise SessionFailed(
                    "a process that computes with encrypted numbers has ended. No row was shown "
                    "beyond what was sent before. Try again, with fewer processes if memory is "
                    "short."
                ) from answer
            found.append(_checked(answer))
        return found

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self, at_once: bool = False) -> None:
        for process in self._started:
            if at_once:
                process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    _closed(pipe)
            try:
                process.wait(SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._started.clear()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _started() -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "hedgerow.methods.fedxgboost.paillier_jobs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,  # Ctrl-C is for the process that asks
    )


def _feed(
    process: subprocess.Popen[bytes],
    jobs: Sequence[bytes],
    numbers: Iterator[int],
    answers: list[bytes | BaseException],
) -> None:
    """Give one process jobs until none is left. `next` of a range is one step for all threads."""
    for number in numbers:
        try:
            if process.stdin is None or process.stdout is None:
                raise BrokenPipeError("the process has no pipes")
            write_frame(process.stdin, jobs[number])
            answers[number] = read_frame(process.stdout)
        except (OSError, EOFError, ValueError, struct.error) as error:
            answers[number] = error
            return


def _closed(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except OSError:  # what was not written yet cannot be written any more
        return


def _checked(answer: bytes) -> bytes:
    """An answer without its first byte, which says whether it is one."""
    if answer[:1] == b"\x00":
        return answer[1:]
    raise FormatError(answer[1:].decode("utf-8"))
