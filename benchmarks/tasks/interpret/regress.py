from interpret.privacy import DPExplainableBoostingRegressor

given["privacy_target_min"], given["privacy_target_max"] = 0, 1000
model = DPExplainableBoostingRegressor(**given)
model.fit(people[names], people["cost"])
predicted = model.predict(later[names])
