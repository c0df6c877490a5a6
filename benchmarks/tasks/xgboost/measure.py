from sklearn.metrics import roc_auc_score

quality = roc_auc_score(later["sick"], model.predict_proba(Z)[:, 1])
