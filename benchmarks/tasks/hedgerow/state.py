promise = model.statement_.words()
