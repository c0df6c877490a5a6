"""Commands as the pages write them, and machines to run them on, each with a network of its own.

Where there is root, every machine is a network namespace; elsewhere all of them share loopback.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.network.hosts import Network, missing

from hedgerow.deployment.trial import free_port, hedgerow
from tests.test_documents import ROOT

PAGES = (
    "README.md", "docs/deployment.md", "docs/howto/own-federation.md", "docs/runtimes.md"
)  # fmt: skip
PROGRAMS = ("hedgerow", "flwr", "flower-superlink", "flower-supernode")
_FENCED = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`]+)`")
_SAME = (  # names that stand for the same thing on different pages
    (r"train\.example\.org:8002|HOST:PORT", "ADDRESS"),
    (
        r"(coordinator (?:init|start|status)|runs|--site) (?:coordinator|SITE)\b",
        r"\1 COORDINATOR",
    ),
    (r"\b(party \w+) (?:hospital-a|north|SITE)\b", r"\1 PARTY"),
    (r"\bnorth/ledger", "PARTY/ledger"),
    (r"\bhospital-a\b", "PARTY"),
)


def commands_of(text: str) -> list[str]:
    """Command lines of a page, in fences and in running text; README's `$` lines are not here.

    Whoever only names a command, as in `hedgerow party pin`, has no line to run.
    """
    fenced = [body.replace("\\\n", " ") for kind, body in _FENCED.findall(text) if kind == "text"]
    found = [line for body in fenced for line in body.splitlines()]
    found += _INLINE.findall(_FENCED.sub("", text))
    lines = (same(" ".join(line.split())) for line in found)
    return [line for line in lines if _is_command(line)]


def same(line: str) -> str:
    """A line with the names that all pages share."""
    line = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", line)  # variables of the environment
    for pattern, name in _SAME:
        line = re.sub(pattern, name, line)
    return line


def _is_command(line: str) -> bool:
    program, *words = line.split(" ")
    if program == "python":
        return words[:2] == ["-m", "hedgerow.engines.flower"]
    return program in PROGRAMS and any(re.search(r"[^a-z]", word) for word in words)


def documented() -> set[str]:
    return {line for page in PAGES for line in commands_of((ROOT / page).read_text("utf-8"))}


class Machines:
    """A folder, and if possible a network namespace, stands for a machine.

    Commands are given as `commands_of` writes them. What is sent from one machine to another is
    written down, and so are the commands.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        self.commands: list[str] = []
        self.crossed: list[str] = []
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()
        self._network = None if missing() else self._stack.enter_context(Network(names))
        host = "127.0.0.1" if self._network is None else self._network.address("coordinator")
        self.address = f"{host}:{free_port()}"

    def at(self, machine: str) -> Path:
        place = self.folder / machine
        place.mkdir(exist_ok=True)
        return place

    def run(self, machine: str, line: str, *further: str, code: int = 0) -> str:
        """What a command wrote; `further` words answer what it would ask a person."""
        process = self._begin(machine, line, further, stdout=subprocess.PIPE)
        out, _ = process.communicate(timeout=400)
        assert process.returncode == code, (line, process.returncode, out)
        return out.decode("utf-8")

    def json(self, machine: str, line: str, *further: str, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(machine, line, *further, "--json", code=code))
        return found

    def start(self, machine: str, line: str, *further: str) -> None:
        with (self.at(machine) / "log").open("ab") as log:
            self.running[machine] = self._begin(machine, line, further, stdout=log, stderr=log)

    def stop(self, machine: str) -> None:
        process = self.running.pop(machine)
        process.terminate()
        assert process.wait(60) == 0

    def send(self, file: Path, machine: str) -> None:
        self.crossed.append(file.name)
        shutil.copy(file, self.at(machine))

    def close(self) -> None:
        try:
            for machine in list(self.running):
                self.stop(machine)
        finally:
            self._stack.close()

    def _begin(
        self, machine: str, line: str, further: Sequence[str], **options: Any
    ) -> subprocess.Popen[bytes]:
        self.commands.append(line)
        here = self.at(machine)
        meant = {"ADDRESS": self.address, "COORDINATOR": "coordinator", "PARTY": machine}
        words = shlex.split(re.sub("|".join(meant), lambda found: meant[found[0]], line))[1:]
        expanded = [
            match
            for word in words
            for match in (sorted(glob.glob(word, root_dir=here)) if "*.card" in word else [word])
        ]
        command = hedgerow([*expanded, *further])
        environment = {**os.environ, "https_proxy": "", "http_proxy": ""}
        options = {"cwd": here, "env": environment, **options}
        if self._network is None:
            return subprocess.Popen(command, **options)
        return self._network.start(machine, command, **options)
