model = XGBClassifier(enable_categorical=True).fit(X, people["ward"].astype("category").cat.codes)
scores = model.predict_proba(Z)
