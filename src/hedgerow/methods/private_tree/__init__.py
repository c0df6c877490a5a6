"""One readable tree under pure epsilon (Gubler 2023, repaired and extended)."""

from hedgerow.methods.private_tree.loop import grow, later, wishes

__all__ = ["grow", "later", "wishes"]
