"""Every kind of model over a running federation: `python train.py COORDINATOR_SITE SCHEMA`."""

import sys

import hedgerow as hr

with hr.open_federation(sys.argv[1], sys.argv[2], wait_seconds=300) as banks:
    boosting = hr.PrivateBoostingClassifier(epsilon=1.0, delta=1e-6).fit_federation(banks)
    tree = hr.PrivateTreeClassifier(epsilon=0.5, max_depth=3).fit_federation(banks)
    similar = hr.SimilarityBoostingClassifier(n_trees=6, max_depth=3).fit_federation(banks)
    vertical = hr.VerticalBoostingClassifier(n_trees=2, max_depth=2, settings={"key_bits": 1024})
    vertical.fit_federation(banks, owners={"spent": "east", "late": "harbour"}, active="north")
for model in (boosting, tree, similar, vertical):
    print(model.statement_.words(), "\n")
