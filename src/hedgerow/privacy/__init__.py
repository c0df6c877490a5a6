"""What is promised, what it costs, and where noise comes from.

accounting/  accountants and plans
noise/       mechanisms (the one place that draws noise) and samplers
ledger/      the append-only record of charges and releases
settings/    the promise, and settings of methods by family
"""
