"""Installs what was built into an empty environment and runs the README there: `make dist`.

The wheel goes into a new environment without any extra, by pip's ordinary client. The Python blocks
and commands of the README run in it, away from the clone and with warnings as errors. The archive
of the source must give the same wheel.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (hedgerow .*)$", re.MULTILINE)


class Environment:
    """An empty environment in a folder, whose programs find no others."""

    def __init__(self, folder: Path) -> None:
        self._bin, self._work = folder / "environment" / "bin", folder / "work"
        self._work.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(self._bin.parent)], check=True)

    def install(self, *requirements: str) -> None:
        """Install by pip, without the compiled files that Python makes when it needs them."""
        pip = [str(self._bin / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--no-compile", *requirements], check=True)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; what it prints is shown where it fails."""
        begun = time.perf_counter()
        hidden = ("PYTHON", "VIRTUAL_ENV", "HEDGEROW", "NUMBA_CACHE")
        settings = {name: text for name, text in os.environ.items() if not name.startswith(hidden)}
        settings |= {"HOME": str(self._work), "PYTHONWARNINGS": "error"}
        done = subprocess.run(
            [str(self._bin / command[0]), *command[1:]],
            cwd=self._work, env=settings, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        shown = shlex.join(command) if len(command) < 3 or command[1] != "-c" else "Python blocks"
        print(f"{time.perf_counter() - begun:6.1f} s  {shown}", flush=True)
        if done.returncode:
            sys.exit(f"{done.stdout}{done.stderr}\nThis failed with code {done.returncode}.")
        return done


def run_readme(environment: Environment) -> None:
    """Run the quickstart as a reader would: the Python blocks, then the commands."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    environment.run("python", "-c", "\n".join(_PYTHON.findall(text)))
    for command in _COMMAND.findall(text):
        environment.run(*shlex.split(command))


def check_source(archive: Path, wheel: Path, folder: Path) -> None:
    """Build the wheel again, from the archive alone, as somebody else would: the same bytes.

    Files have other times and permissions there, and the builder's time zone is another.
    """
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    unpacked = folder / archive.name.removesuffix(".tar.gz")
    for path in unpacked.rglob("*"):
        os.utime(path, (981_173_106, 981_173_106))
        path.chmod(0o700 if path.is_dir() else 0o600)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    elsewhere = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    subprocess.run(
        command, cwd=unpacked, env=elsewhere, umask=0o077, check=True, capture_output=True
    )
    (again,) = folder.glob("*.whl")
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, again)]
    if hashes[0] != hashes[1]:
        sys.exit(f"{archive.name} builds another wheel than {wheel.name}: {' and '.join(hashes)}")
    print(f"{archive.name} builds {wheel.name} byte by byte: sha256 {hashes[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the wheel and the archive are")
    folder = parser.parse_args().folder.resolve()
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as place:
        check_source(archive, wheel, Path(place))
        environment = Environment(Path(place))
        environment.install(str(wheel))
        run_readme(environment)


if __name__ == "__main__":
    main()
