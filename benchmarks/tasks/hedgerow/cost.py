from hedgerow import Privacy, plan_for

cost = str(plan_for(schema, Privacy(epsilon=1.0, delta=1e-6)))
