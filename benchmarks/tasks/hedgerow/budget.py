from hedgerow import Ledger
from hedgerow.errors import BudgetExceeded

with Ledger.open("people.ledger", epsilon=1.6, delta=1e-6):
    model.fit("people.csv")
    model.fit("people.csv")
    try:
        model.fit("people.csv")
    except BudgetExceeded:
        refused = True
