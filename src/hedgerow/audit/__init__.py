"""Attacks and audits of what leaves a party, measured; a model checked against its ledgers.

one_run.py              canaries in or out by a coin, told from the releases of one run
black_box.py            one canary in or out of each of many runs, told from the models
recorder.py             what passes the gate, written down
made_up.py              made-up rows that fit a schema, and canaries
scoring.py              how well releases tell each canary's coin
bounds.py               what an attack's success says of mu and epsilon
result.py               what an audit found, as a file and in words
simfl.py                how far the hashes of a row narrow it down
fedxgboost.py           all audits of a vertical federation on one table, in figures
fedxgboost_columns.py   columns of a passive party, from the splits that are shown
fedxgboost_null_spaces.py   null-space vectors by themselves, before any answer
fedxgboost_labels.py    labels, from plain, noisy and randomised gradients
fedxgboost_matrices.py  answers of secure matrix multiplication
verification.py         whether a model is what its ledgers say, for an outside reader
books.py                ledgers of the coordinator and of parties, side by side
replaying.py            a model grown again from stored releases
"""

from hedgerow.audit.black_box import black_box
from hedgerow.audit.fedxgboost import AuditSettings, audit_table
from hedgerow.audit.one_run import one_run
from hedgerow.audit.result import AuditResult
from hedgerow.audit.verification import Verification, verify_model, write_manifest

__all__ = [
    "AuditResult",
    "AuditSettings",
    "Verification",
    "audit_table",
    "black_box",
    "one_run",
    "verify_model",
    "write_manifest",
]
