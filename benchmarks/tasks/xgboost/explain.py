from sklearn.inspection import partial_dependence

effect = partial_dependence(model, X, ["age"])["average"][0]
