promise = f"epsilon = {model.epsilon}, delta = {model.delta}"
