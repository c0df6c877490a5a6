"""`python -m hedgerow.engines.flower FOLDER`: write the Flower app of the relay.

The app is a `pyproject.toml` and a licence; its code is hedgerow itself.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

from hedgerow.errors import HedgerowError, SettingsError

_PROJECT = """\
[project]
name = "hedgerow-relay"
version = "{version}"
description = "Carries hedgerow's messages through Flower; answers are sealed."
license = {{ file = "LICENSE" }}
dependencies = ["flwr>=1.41.0,<1.42", "hedgerow[flower]=={version}"]

[tool.flwr.app]
publisher = "hedgerow"
fab-format-version = 1
flwr-version-target = "1.41.0"

# Nothing of the app is code: both ends are installed with hedgerow.
[tool.flwr.app.components]
serverapp = "hedgerow.engines.flower.server:app"
clientapp = "hedgerow.engines.flower.client:app"

[tool.flwr.app.config]
idle-seconds = {idle}
"""
_LICENSE = """\
Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0
"""


def write_app(folder: Path, idle_seconds: float = 600.0) -> None:
    """Write the app's folder, for `flwr run FOLDER`; it must not exist."""
    if folder.exists():
        raise SettingsError(f"{folder} exists already. Nothing was written. Choose another folder.")
    folder.mkdir(parents=True)
    text = _PROJECT.format(version=version("hedgerow"), idle=float(idle_seconds))
    (folder / "pyproject.toml").write_text(text, "utf-8")
    (folder / "LICENSE").write_text(_LICENSE, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m hedgerow.engines.flower",
        description="Write the Flower app that carries hedgerow's messages.",
        epilog="Example: python -m hedgerow.engines.flower relay-app && flwr run relay-app ours",
    )
    parser.add_argument("folder", type=Path, help="a folder that does not exist yet")
    folder = parser.parse_args().folder
    try:
        write_app(folder)
    except HedgerowError as error:
        sys.exit(str(error))
    print(f"wrote {folder}; submit it with: flwr run {folder} SUPERLINK")


if __name__ == "__main__":
    main()
