"""Boosting with learned splits under pure epsilon, for one coordinator who is trusted with sums.

After Grislain and Gonzalez (2021); what is done differently, and why, is in docs/dp-xgboost.md.
"""

from hedgerow.methods.dp_xgboost.loop import grow, later, wishes

__all__ = ["grow", "later", "wishes"]
