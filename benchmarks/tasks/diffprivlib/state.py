promise = f"epsilon = {model.epsilon}"
