"""Other private ways to a model, on one-hot bins of public edges: ridge and logistic regression.

Both know what the default method is told: schema, bounds, delta; and besides the number of training
rows. Noise is Gaussian, accounted for exactly: mu of (epsilon, delta) by `hedgerow`'s accountant.
Settings were chosen on development splits.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from accuracy.data import Data, Split
from hedgerow.data.binning import base_grid
from hedgerow.privacy.accounting.gaussian import mu_of

RIDGE, LOGISTIC = "private ridge", "private logistic regression"
RIVALS = (RIDGE, LOGISTIC)
BINS = 16  # of a numeric column, even, beside one for missing values
ROUNDS = 60  # gradient steps of the logistic regression
STEP = 64.0  # over the rows: 16 times what is sure to go down


def fit_rival(data: Data, split: Split, method: str, epsilon: float, delta: float) -> np.ndarray:
    """Probabilities of the two classes for the test rows: (row, class)."""
    X = one_hot(data)
    m, target = len(data.schema.columns), data.truth[split.train]
    weigh = _ridge if method == RIDGE else _logistic
    weights = weigh(X[split.train], target, m, mu_of(epsilon, delta, 0))
    scores = X[split.test] @ weights
    second = np.clip((1 + scores) / 2, 0, 1) if method == RIDGE else 1 / (1 + np.exp(-scores))
    return np.column_stack([1 - second, second])


def one_hot(data: Data) -> sparse.csr_matrix:
    """Every row has a one in each column of the schema, in the bin that its value lies in."""
    places, begin = [], 0
    for j, grid in enumerate(base_grid(data.schema)):
        codes = data.rows.codes.column(j).astype(np.int64)
        bins = np.searchsorted(grid.uniform_edges(BINS), codes) if grid.ordered else codes
        n_bins = (len(grid.uniform_edges(BINS)) + 1) if grid.ordered else grid.n_cells
        places.append(begin + np.where(codes == grid.missing_code, n_bins, bins))
        begin += n_bins + 1
    columns = np.stack(places, axis=1)  # (row, column)
    n, m = columns.shape
    ones, rows = np.ones(n * m), np.repeat(np.arange(n), m)
    return sparse.csr_matrix((ones, (rows, columns.ravel())), shape=(n, begin))


def _ridge(X: sparse.csr_matrix, target: np.ndarray, m: int, mu: float) -> np.ndarray:
    """Noisy sums of x x' and x y, each said once.

    A row adds 1 to m (m + 1) / 2 entries on or above the diagonal and +-1 to m sums of labels. The
    penalty is as large as the noise can make the least eigenvalue negative: 2 sigma sqrt(p).
    """
    p, rng = X.shape[1], np.random.default_rng()
    sigma = math.sqrt(m * (m + 1) / 2 + m) / mu
    noise = np.triu(rng.normal(0, sigma, (p, p)))
    gram = (X.T @ X).toarray() + noise + np.triu(noise, 1).T
    moment = X.T @ (2.0 * target - 1) + rng.normal(0, sigma, p)
    return np.linalg.solve(gram + 2 * sigma * math.sqrt(p) * np.eye(p), moment)


def _logistic(X: sparse.csr_matrix, target: np.ndarray, m: int, mu: float) -> np.ndarray:
    """Gradient descent over all rows; the mean of the second half of the steps.

    With x of length 1 a row's gradient (p - y) x is no longer than that.
    """
    X = X / math.sqrt(m)
    n, p = X.shape
    sigma, rng = math.sqrt(ROUNDS) / mu, np.random.default_rng()
    weights, mean = np.zeros(p), np.zeros(p)
    for number in range(ROUNDS):
        gradient = X.T @ (1 / (1 + np.exp(-(X @ weights))) - target)
        weights = weights - STEP / n * (gradient + rng.normal(0, sigma, p))
        if 2 * number >= ROUNDS:
            mean += weights / (ROUNDS - ROUNDS // 2)
    return mean / math.sqrt(m)
