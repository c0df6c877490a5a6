from hedgerow import PrivateBoostingRegressor

schema = Schema(columns, Label("cost", lower=0, upper=1000))
model = PrivateBoostingRegressor(schema, epsilon=1.0, delta=1e-6).fit("people.csv")
predicted = model.predict("later.csv")
