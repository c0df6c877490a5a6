import hedgerow

model.save("model.hedge")
again = hedgerow.load("model.hedge")
scores = again.predict_proba("later.csv")[:, 1]
