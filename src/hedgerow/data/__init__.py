"""Public facts about a table, and tables read by them. Rows become small integer codes here.

documents.py       TOML, JSON and tables in messages, read into the dataclasses that declare them
document_rules.py  what the annotations of such a dataclass allow, and what a mistake is told
habits.py          other libraries' names for what is here, and misspelt ones
values.py          the one rule by which values match categories, classes and ids
schema.py          columns, bounds, categories, label and unit, agreed before anything is asked
schema_parts.py    its columns, label and unit
survival.py        times and events of a label, and the cell of both that a row is kept as
counts.py          counts and exposures of a label, and the one number a row is kept as
weights.py         how often rows count: private weights under a public cap, on a grid
schema_checks.py   what its parts must be, and what a mistake in them is told
schema_toml.py     schemas as TOML
descriptions.py    dataset descriptions that carry the same facts
schema_words.py    what may stand in a column, in words
csv_format.py      how CSV files are written: separator, signs of numbers, encoding, missing values
readers.py         any kind of table seen as columns; Parquet and CSV files
tables.py          tables to rows checked against a schema
columns.py         a column of any carrier as numbers, or as distinct values and where they are
encoding.py        columns to codes, batch by batch; what does not fit is counted
binning.py         the public base grid, and codes on it
drafting.py        a schema proposed from a public sample; marked, because it reads rows
draft_columns.py   what a draft makes of one column
checking.py        what a schema does to a table, counted for its owner's eyes alone
holdout.py         which rows are kept out of training, by a public rule
persons.py         unit person: at most k rows of each person
cards.py           what terminals and notebooks show of an object: a line, a small table
datasets.py        made-up tables for the demonstration
rng.py             model randomness, public and seeded; the only use of numpy.random
"""
