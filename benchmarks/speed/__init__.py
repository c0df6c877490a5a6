"""What the benchmarks of time and memory share: clocks, repetitions, tables, fits, reports.

Threads of OpenMP, on which the anchors run, spin while they wait for each other. On a machine that
does other work too this costs them several times their own work in wall and CPU seconds, so they
are told to sleep instead, unless the environment says otherwise; before any of them is loaded.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
