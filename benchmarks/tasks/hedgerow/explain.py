effect = model.explain().shape("age").values
