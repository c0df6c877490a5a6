"""One readable tree under pure epsilon (Gubler 2023, repaired and extended).

loop.py     what is asked, and the model
rule.py     how a path's epsilon is shared out
asking.py   its queries
nodes.py    what is known of nodes
growth.py   what is worth asking, and where nodes are cut
splits.py   the best cut of a node at one column
pruning.py  splits taken back
"""

from hedgerow.methods.private_tree.loop import (
    adaptive_queries,
    caution_of,
    declared_queries,
    grow,
)

__all__ = ["adaptive_queries", "caution_of", "declared_queries", "grow"]
