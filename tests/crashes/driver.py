"""`hedgerow` with its noise switched off, so that a resumed run can be compared exactly.

As a module of its own it runs one command. With `--many` it loads everything once, then forks a
process for every command that it reads: these start at once, and are killed as any other.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from hedgerow import failpoints
from hedgerow.cli.app import main
from hedgerow.testing import noise_off


def one() -> int:
    with noise_off():
        main()
    return 0


def many() -> None:
    """Commands as lines of JSON from stdin; their exit codes to stdout, -9 if one was killed."""
    import hedgerow.engines.local
    import hedgerow.kernels
    import hedgerow.methods.auto.loop
    import hedgerow.methods.maddock.boosting
    import hedgerow.methods.registry  # noqa: F401

    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_child(wanted))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps(code), flush=True)


def _child(wanted: dict[str, Any]) -> int:
    os.environ.update(wanted["environment"])
    failpoints._wanted = wanted["environment"]["HEDGEROW_FAIL_AT"]  # read when a process begins
    for number, name in ((1, "stdout"), (2, "stderr")):
        target = os.open(wanted[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, number)
    sys.argv = ["hedgerow", *wanted["words"]]
    try:
        code = one()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    if sys.argv[1:] == ["--many"]:
        many()
    else:
        sys.exit(one())
