import joblib

joblib.dump(model, "model.joblib")
again = joblib.load("model.joblib")
scores = again.predict_proba(later[names])[:, 1]
