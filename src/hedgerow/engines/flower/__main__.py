"""`python -m hedgerow.engines.flower FOLDER`: write the Flower app of the relay."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hedgerow.engines.flower.app import write_app
from hedgerow.errors import HedgerowError


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
