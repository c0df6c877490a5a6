from hedgerow import Categorical, Label, Numeric, PrivateBoostingClassifier, Schema

jobs = Categorical("job", ("desk", "field", "none"))
columns = (Numeric("age", 18, 90), Numeric("hours", 0, 80), jobs)
schema = Schema(columns, Label("sick", ("no", "yes")))
model = PrivateBoostingClassifier(schema, epsilon=1.0, delta=1e-6).fit("people.csv")
scores = model.predict_proba("later.csv")[:, 1]
