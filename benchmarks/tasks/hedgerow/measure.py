from hedgerow import evaluate_privately

quality = evaluate_privately(model, "later.csv", epsilon=0.5)["auc"].value
