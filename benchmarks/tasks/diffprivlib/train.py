import numpy as np
import pandas as pd
from diffprivlib.models import RandomForestClassifier


def encoded(rows):
    jobs = [rows["job"] == job for job in ("desk", "field", "none")]
    return np.column_stack([rows[["age", "hours"]].fillna(40), *jobs])


people, later = pd.read_csv("people.csv"), pd.read_csv("later.csv")
sick = (people["sick"] == "yes").astype(int)
bounds = ([18, 0, 0, 0, 0], [90, 80, 1, 1, 1])
model = RandomForestClassifier(epsilon=1.0, bounds=bounds, classes=[0, 1])
model.fit(encoded(people), sick)
scores = model.predict_proba(encoded(later))[:, 1]
