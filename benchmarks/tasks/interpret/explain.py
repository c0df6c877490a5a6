effect = model.explain_global().data(names.index("age"))["scores"]
