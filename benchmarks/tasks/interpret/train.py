import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier

people, later = (pd.read_csv(f"{name}.csv").fillna({"hours": 40}) for name in ("people", "later"))
names = ["age", "hours", "job"]
given = {"epsilon": 1.0, "delta": 1e-6, "privacy_bounds": {"age": (18, 90), "hours": (0, 80)}}
model = DPExplainableBoostingClassifier(**given)
model.fit(people[names], people["sick"])
scores = model.predict_proba(later[names])[:, 1]
