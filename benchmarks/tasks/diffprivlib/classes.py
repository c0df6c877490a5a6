model = RandomForestClassifier(epsilon=1.0, bounds=bounds, classes=[0, 1, 2])
model.fit(encoded(people), people["ward"].map({"east": 0, "north": 1, "west": 2}))
scores = model.predict_proba(encoded(later))
