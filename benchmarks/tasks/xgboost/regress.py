from xgboost import XGBRegressor

predicted = XGBRegressor(enable_categorical=True).fit(X, people["cost"]).predict(Z)
