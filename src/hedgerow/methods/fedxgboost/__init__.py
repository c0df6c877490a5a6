"""Boosted trees over parties that hold different columns of the same people (FedXGBoost, Le 2021).

An active party has the labels, passive parties have further columns. What the parties show each
other follows from the protection that they agreed on; only `ldp` has an epsilon, for labels alone.

settings.py       what parties agree on
run.py            agreements and models
role.py           a party's side of a run
asking.py         questions and answers inside the steps of a session
alignment.py      private set intersection of ids
aligning.py       the first steps: rows in one common order
ids.py            what counts as an id
bins.py           a party's own columns in bins
levels.py         nodes, histograms and best splits of a level
boost.py          the growing, written once for all protections
places.py         where a party's own splits lie, and which rows can reach them
protections/      how split statistics are protected, one file each
paillier.py       gradients encrypted, added up, decrypted
paillier_jobs.py  its arithmetic on pieces of arrays
paillier_keys.py  its keys: primes whose generators are known
processes.py      processes that do it
estimate.py       how long it will take, before anything is sent
model.py          parts of a model, and merging them
predicting.py     joint prediction
statements.py     what parties can see or infer
"""
