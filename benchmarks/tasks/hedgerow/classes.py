schema = Schema(columns, Label("ward", ("east", "north", "west")))
model = PrivateBoostingClassifier(schema, epsilon=1.0, delta=1e-6).fit("people.csv")
scores = model.predict_proba("later.csv")
