from interpret.glassbox import merge_ebms

parts = []
for _, rows in people.groupby("site"):
    own = DPExplainableBoostingClassifier(**given)
    parts.append(own.fit(rows[names], rows["sick"]))
scores = merge_ebms(parts).predict_proba(later[names])[:, 1]
