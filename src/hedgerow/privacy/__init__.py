"""What is promised, what it costs, and where noise comes from.

accounting/  accountants and plans
noise/       mechanisms (the one place that draws noise) and samplers
ledger/      the append-only record of charges and releases
settings/    the promise, and settings of methods by family
cautions.py  what looks like a mistake by public facts alone
"""
