"""Run by an interpreter that has diffprivlib: one private tree, its shares of the second class."""

from __future__ import annotations

import sys

import numpy as np
from diffprivlib.models import DecisionTreeClassifier

given, found, depth, epsilon, seed = sys.argv[1:]
table = np.load(given)
X = table["X"]
tree = DecisionTreeClassifier(
    max_depth=int(depth), epsilon=float(epsilon), random_state=int(seed), classes=[0, 1],
    bounds=(np.minimum(X.min(axis=0), 0), np.maximum(X.max(axis=0), 1)),
)  # fmt: skip
tree.fit(X, table["y"])
np.save(found, tree.predict_proba(table["test"])[:, 1])
