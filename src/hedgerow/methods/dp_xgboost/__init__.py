"""Boosting with learned splits under pure epsilon, for one coordinator who is trusted with sums.

After Grislain and Gonzalez (2021); what is done differently, and why, is in docs/dp-xgboost.md.

loop.py   what is asked, tree by tree
rule.py   how a tree's epsilon is shared out
trees.py  one tree: cuts drawn by utility, then leaves
"""

from hedgerow.methods.dp_xgboost.loop import adaptive_queries, declared_queries, grow

__all__ = ["adaptive_queries", "declared_queries", "grow"]
