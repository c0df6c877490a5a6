from diffprivlib.tools import mean

right = model.predict(encoded(later)) == (later["sick"] == "yes")
quality = mean(right, epsilon=0.5, bounds=(0, 1))
