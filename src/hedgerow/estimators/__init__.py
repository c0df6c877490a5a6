"""scikit-learn estimators: one table, several parties in one process, or a federation.

boosting.py     PrivateBoostingClassifier, and what private boosting shares
regression.py   PrivateBoostingRegressor: numbers, quantiles and counts
survival.py     PrivateSurvivalBoosting: time to an event
tree.py         PrivateTreeClassifier, one readable tree
simfl.py        SimilarityBoostingClassifier and -Regressor; no differential privacy
vertical.py     VerticalBoostingClassifier and -Regressor; columns of several parties
evaluation.py   evaluate_privately
scoring.py      PrivateScorer, and what the choice of a search shows
search_cost.py  what a search will cost
loading.py      load: a fitted estimator from a model file
base.py         what all share: inputs, settings, the ledger, the fitted model
weights.py      weights of classes, put onto scores without a question
keywords.py     keywords that an estimator does not have, explained
progress.py     what a fit with `verbose` prints
inputs.py       scikit-learn's conventions for X and y; rows dealt to parties; the user's ledger
"""
