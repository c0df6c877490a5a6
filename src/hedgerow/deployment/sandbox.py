"""A party's process, confined by the kernel (Landlock, Linux 5.13 and later): a second wall.

Whoever finds a way to make a party's process do something else can then write to its site folder
and nowhere else, and read Python, the system's libraries, the table and what was named at its
start. Sockets and the network are not affected. Threads that run already would stay free, so the
process confines itself and then begins anew in its own place, with everything it was started with.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_VERSION_FLAG, _BENEATH = 1, 1
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS
_RUN, _WRITE, _READ, _LIST, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_REMOVE_FILE, _MAKE_SOCKET = 1 << 5, 1 << 9
_ALL = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}  # by version of the interface
_OF_FILES = _RUN | _WRITE | _READ | _TRUNCATE
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/sys", "/nix/store", "/run/systemd/resolve")
_PROCESS = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys")
_DEVICES = ("/dev/null", "/dev/shm")  # semaphores of Python's own locks lie in the second
_SOURCES = ("/dev/random", "/dev/urandom", "/dev/zero")
_MARK = "HEDGEROW_CONFINED"  # in the environment: the number of the process that is
_SOURCE = str(Path(__file__).parents[2])  # of hedgerow, wherever it was found


@dataclass(frozen=True)
class Sandbox:
    """What a party's process may use besides Python and the system's libraries."""

    site: Path  # to read and write
    readable: tuple[Path, ...]  # table, schema, limits
    sockets: tuple[Path, ...] = ()  # for relays and a console: made in folders of others

    def enter(self) -> str:
        """Confine this thread, and whatever it starts, for good; why not, if that cannot be.

        Threads that run already stay free: `begin_anew` ends them.
        """
        library = ctypes.CDLL(None, use_errno=True)
        version = library.syscall(_CREATE, None, 0, _VERSION_FLAG)
        if version < 1:
            return "the kernel has no Landlock (Linux 5.13 and later have it, unless switched off)"
        scratch, cache = self.site / "scratch", os.environ.get("NUMBA_CACHE_DIR")
        compiled = Path(cache) if cache else self.site / "compiled"
        for folder in (scratch, compiled, *(socket.parent for socket in self.sockets)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handled = _ALL[min(version, max(_ALL))]
        wanted = ctypes.c_uint64(handled)
        rules = library.syscall(_CREATE, ctypes.byref(wanted), ctypes.sizeof(wanted), 0)
        _check(rules >= 0)
        for path, rights in self._rights(handled, compiled):
            _allow(library, rules, path, rights)
        _check(library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0)
        _check(library.syscall(_RESTRICT, rules, 0) == 0)
        os.close(rules)
        own = {_MARK: str(os.getpid()), "TMPDIR": str(scratch), "NUMBA_CACHE_DIR": str(compiled)}
        os.environ.update(own)
        return ""

    def _rights(self, handled: int, compiled: Path) -> Iterable[tuple[str, int]]:
        for path in {*_SYSTEM, *_PROCESS, *_SOURCES, *_python(), _SOURCE}:
            yield path, _RUN | _READ | _LIST
        for file in self.readable:
            yield str(file), _READ | _LIST
        for socket in self.sockets:
            yield str(socket.parent), _LIST | _MAKE_SOCKET | _REMOVE_FILE
        for path in (str(self.site), str(compiled), *_DEVICES):
            yield path, handled


def confine(
    path: Path,
    data: Path | None,
    schema: Path | None,
    limits: Path | None,
    sockets: Sequence[Path],
) -> str:
    """Go on in a confined process, in place of this one; returns only with why that cannot be."""
    from hedgerow.deployment.start import Start
    from hedgerow.engines.site import Site

    said = [word for word in sys.argv[1:] if not word.startswith("-")]
    if said[:2] != ["party", "start"]:
        return "another program than `hedgerow party start` runs it"
    site = Site.open(path, "party")
    begin = Start.remembered(site).updated(data, schema, limits)
    files = (begin.data, begin.schema, begin.limits_file(site))
    readable = tuple(file.resolve() for file in files if file is not None)
    places = tuple(socket.resolve() for socket in sockets)
    problem = Sandbox(site.path, readable, places).enter()
    if not problem:
        begin_anew(sys.argv[1:])
    return problem


def begin_anew(arguments: Sequence[str]) -> NoReturn:
    """Go on with a command of hedgerow in place of this process, which keeps its number."""
    named = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{_SOURCE}:{named}" if named else _SOURCE
    # -P: the folder that this was started in is none of Python's, and cannot be read.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "hedgerow", *arguments])


def is_confined() -> bool:
    """Whether this process is."""
    return os.environ.get(_MARK) == str(os.getpid())


def bring_compiled() -> None:
    """Copy compiled loops from beside the source to where this process keeps its own.

    A confined process cannot write beside the source, and Numba wants to keep what it compiles.
    """
    from hedgerow.kernels.loops import add_by_code
    from hedgerow.privacy.noise.mechanisms import gaussian_loop

    loop: Any
    for loop in (add_by_code, gaussian_loop()):  # one of each folder of the source that has any
        own = Path(loop.stats.cache_path)
        own.mkdir(parents=True, exist_ok=True)
        source = Path(loop.py_func.__code__.co_filename).parent
        for file in (source / "__pycache__").glob("*.nb[ci]"):
            kept = own / file.name
            if not kept.exists() or kept.stat().st_mtime < file.stat().st_mtime:
                shutil.copy2(file, kept)


def _python() -> Iterable[str]:
    """Where Python and its packages lie; not the folder that this was started in."""
    named = os.environ.get("PYTHONPATH", "").split(":")
    here = {"", os.getcwd()} - {*named}
    paths = (path for path in sys.path if path not in here)
    programs = (os.path.dirname(p) for p in (sys.executable, os.path.realpath(sys.executable)))
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return (sys.prefix, sys.base_prefix, sys.exec_prefix, *paths, *programs, *libraries)


def _allow(library: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    if not path or not os.path.exists(path):
        return
    file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Rule(rights if os.path.isdir(path) else rights & _OF_FILES, file)
        _check(library.syscall(_ADD, rules, _BENEATH, ctypes.byref(rule), 0) == 0)
    finally:
        os.close(file)


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("file", ctypes.c_int32))


def _check(succeeded: bool) -> None:
    if not succeeded:
        raise OSError(ctypes.get_errno(), "the kernel refused to confine this process")
