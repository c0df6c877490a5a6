import pandas as pd

people = pd.read_csv("people.csv")
model.fit(people, parties=people["site"])
scores = model.predict_proba("later.csv")[:, 1]
