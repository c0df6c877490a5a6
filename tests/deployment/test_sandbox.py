"""A confined process: what it may not write and read, tried by a process that is."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_TRIES = """
import json, os, sys, threading
from pathlib import Path
from hedgerow.deployment.sandbox import Sandbox, is_confined

site, table, socket, other = (Path(word) for word in sys.argv[1:5])
assert not is_confined()
problem = Sandbox(site, (table,), (socket,)).enter()
found = {"problem": problem, "confined": is_confined()}

def attempt(name, action):
    try:
        action()
        found[name] = "done"
    except PermissionError:
        found[name] = "denied"

def bind():
    import socket as sockets
    with sockets.socket(sockets.AF_UNIX) as made:
        made.bind(str(socket))
    socket.unlink()

def everything():
    attempt("write in the site", lambda: (site / "a").write_text("x"))
    attempt("rename in the site", lambda: (site / "a").rename(site / "b"))
    attempt("read the table", table.read_bytes)
    attempt("make the socket", bind)
    attempt("write the table", lambda: table.write_text("x"))
    attempt("shorten the table", lambda: os.truncate(table, 0))
    attempt("write beside the socket", lambda: (socket.parent / "a").write_text("x"))
    attempt("read another file", other.read_bytes)
    attempt("write another file", lambda: other.write_text("x"))
    attempt("make a file elsewhere", lambda: (other.parent / "new").write_text("x"))
    attempt("remove a file elsewhere", other.unlink)
    attempt("list a folder elsewhere", lambda: os.listdir(other.parent))
    attempt("write beside the source", lambda: (Path(os.__file__).parent / "new").write_text("x"))
    attempt("import", lambda: __import__("sqlite3"))

thread = threading.Thread(target=everything)
thread.start()
thread.join()
print(json.dumps(found))
"""
ALLOWED = {
    "write in the site", "rename in the site", "read the table", "make the socket", "import"
}  # fmt: skip


def has_landlock() -> bool:
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 1


@pytest.mark.skipif(not has_landlock(), reason="the kernel has no Landlock")
def test_a_confined_process_writes_to_its_site_alone_and_reads_its_table(tmp_path: Path) -> None:
    site, run, elsewhere = (tmp_path / name for name in ("site", "run", "elsewhere"))
    for folder in (site, elsewhere):
        folder.mkdir()
    table, other = tmp_path / "table.csv", elsewhere / "secret"
    table.write_text("a,b\n")
    other.write_text("secret")
    command = [sys.executable, "-c", _TRIES, str(site), str(table), str(run / "relay.sock")]
    done = subprocess.run([*command, str(other)], stdout=subprocess.PIPE, check=True, timeout=60)
    found = json.loads(done.stdout)
    assert (found.pop("problem"), found.pop("confined")) == ("", True)
    assert {name for name, outcome in found.items() if outcome == "done"} == ALLOWED
    assert (table.read_text(), other.read_text()) == ("a,b\n", "secret")
    assert os.listdir(elsewhere) == ["secret"]


def test_this_process_is_not_confined_and_says_so() -> None:
    from hedgerow.deployment.sandbox import is_confined

    assert not is_confined()
    os.environ["HEDGEROW_CONFINED"] = str(os.getppid())  # as a child of one that is would have it
    try:
        assert not is_confined()
    finally:
        del os.environ["HEDGEROW_CONFINED"]
