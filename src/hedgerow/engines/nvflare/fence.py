"""A fence around a process: it sees the Python installation and what it is given, no other files.

A second wall behind `doors.py`, by the kernel (Landlock, Linux 5.13 and later): whoever finds a way
to make NVFlare read a file in a party's house finds neither rows nor the signing key nor a ledger.
What the process starts is fenced too. Sockets and network connections are not affected.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_VERSION_FLAG, _BENEATH = 1, 1
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS
_RUN, _WRITE, _READ, _LIST, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}  # by version of the interface
_OF_FILES = _RUN | _WRITE | _READ | _TRUNCATE
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/sys", "/dev", "/nix/store")
_RESOLVER = "/run/systemd/resolve"  # to which /etc/resolv.conf leads on many machines
_NULL = "/dev/null"


@dataclass(frozen=True)
class Fence:
    """What a process may use besides Python and the system's libraries."""

    folders: tuple[str, ...]  # to read and write
    files: tuple[str, ...]  # to read
    listed: tuple[str, ...] = ()  # folders whose names may be seen, as whoever uses a socket does


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("file", ctypes.c_int32))


def enclose(fence: Fence) -> bool:
    """Put this process behind the fence, for good; False if the kernel has none."""
    library = ctypes.CDLL(None, use_errno=True)
    version = library.syscall(_CREATE, None, 0, _VERSION_FLAG)
    if version < 1:
        return False
    handled = _RIGHTS[min(version, max(_RIGHTS))]
    wanted = ctypes.c_uint64(handled)
    rules = library.syscall(_CREATE, ctypes.byref(wanted), ctypes.sizeof(wanted), 0)
    _check(rules >= 0)
    for path in _readable():
        _allow(library, rules, path, _RUN | _READ | _LIST)
    for path in fence.files:
        _allow(library, rules, path, _READ)
    for path in fence.listed:
        _allow(library, rules, path, _LIST)
    for path in (*fence.folders, _NULL):
        _allow(library, rules, path, handled)
    _check(library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0)
    _check(library.syscall(_RESTRICT, rules, 0) == 0)
    os.close(rules)
    return True


def _readable() -> Iterable[str]:
    python = (sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path)
    programs = (os.path.dirname(p) for p in (sys.executable, os.path.realpath(sys.executable)))
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    wanted = {*_SYSTEM, _RESOLVER, *python, *programs, *libraries}
    return sorted(path for path in wanted if path and os.path.exists(path))


def _allow(library: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Rule(rights if Path(path).is_dir() else rights & _OF_FILES, file)
        _check(library.syscall(_ADD, rules, _BENEATH, ctypes.byref(rule), 0) == 0)
    finally:
        os.close(file)


def _check(succeeded: bool) -> None:
    if not succeeded:
        raise OSError(ctypes.get_errno(), "the kernel refused to fence this process in")
