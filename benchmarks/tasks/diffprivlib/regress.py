from diffprivlib.models import LinearRegression

model = LinearRegression(epsilon=1.0, bounds_X=bounds, bounds_y=(0, 1000))
model.fit(encoded(people), people["cost"])
predicted = model.predict(encoded(later))
