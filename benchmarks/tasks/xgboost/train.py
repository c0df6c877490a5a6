import pandas as pd
from xgboost import XGBClassifier

people, later = pd.read_csv("people.csv"), pd.read_csv("later.csv")
X, Z = (rows[["age", "hours", "job"]].astype({"job": "category"}) for rows in (people, later))
model = XGBClassifier(enable_categorical=True).fit(X, people["sick"] == "yes")
scores = model.predict_proba(Z)[:, 1]
