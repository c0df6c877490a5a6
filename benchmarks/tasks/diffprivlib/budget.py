from diffprivlib import BudgetAccountant
from diffprivlib.utils import BudgetError

with BudgetAccountant(epsilon=2.0, delta=0.0):
    model = RandomForestClassifier(epsilon=1.0, bounds=bounds, classes=[0, 1])
    model.fit(encoded(people), sick)
    model.fit(encoded(people), sick)
    try:
        model.fit(encoded(people), sick)
    except BudgetError:
        refused = True
