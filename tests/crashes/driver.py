"""`hedgerow` with its noise switched off, so that a resumed run can be compared exactly."""

from __future__ import annotations

import sys

from hedgerow.cli.app import main
from hedgerow.testing import noise_off

if __name__ == "__main__":
    with noise_off():
        sys.exit(main())
