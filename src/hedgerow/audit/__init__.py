"""Attacks on what methods without noise show the parties, measured on real code.

simfl.py                how far the hashes of a row narrow it down
fedxgboost.py           all audits of a vertical federation on one table, in figures
fedxgboost_columns.py   columns of a passive party, from the splits that are shown
fedxgboost_null_spaces.py   null-space vectors by themselves, before any answer
fedxgboost_labels.py    labels, from plain, noisy and randomised gradients
fedxgboost_matrices.py  answers of secure matrix multiplication
"""

from hedgerow.audit.fedxgboost import AuditSettings, audit_table

__all__ = ["AuditSettings", "audit_table"]
