model.save_model("model.ubj")
again = XGBClassifier(enable_categorical=True)
again.load_model("model.ubj")
scores = again.predict_proba(Z)[:, 1]
