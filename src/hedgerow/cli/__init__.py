"""The command line: one file per command, registered in `app`; what commands share beside them.

app.py                 registers every command and turns errors into exit codes
options.py             groups of options that several commands share
given.py               what was given: flag before environment before plan file; and the plan
screen.py              results on stdout, everything else on stderr; logging in UTC
files.py               where results go: checked before anything is spent, written by rename
progress.py            progress on stderr, and Ctrl-C between two releases
data_sets.py           which ledger counts a data set
pinning.py             shows cards and rosters, and pins one after a person agreed
parties.py             where the parties of a command are: tables in this process, or other sites
trained_on.py          the tables of a model noted beside it, and the rows held out
curves.py              expected errors and simulated curves, for `advise` and `plan`
cluster.py             a Dask cluster as the one party of a run
demo_notebook.py       the demonstration as a notebook
demo_run.py            the training and comparison behind `demo`
private_evaluation.py  the private part of `evaluate`
sessions.py            what commands share whose parties send each other messages in a session
vertical_parties.py    who takes part in `vertical`, and who holds which column
vertical_time.py       how long `vertical train` will take, told before it starts
advise.py              how much epsilon is needed
audit.py               what a plan releases attacked on made-up rows, beside its promise
console.py             pages for the operator and the privacy officer of a site
coordinator.py         the site that drives runs, and its port
deciding.py            people decide on plans at a party, and who may
demo.py                three made-up hospitals train one model
draft.py               proposes a schema from a public sample; who confirms it
evaluate.py            how good a model is; private with an epsilon
explain.py             what a model does, column by column
export.py              a model in the format of another library
federation.py          the roster of all sites; a trial on one machine
ledger.py              lists, shows and verifies ledgers
methods.py             lists methods and their settings
party.py               runs a party beside its data; shows and decides
plan.py                what a run will ask and cost
predict.py             predictions for the rows of a table
report.py              one page about a model
runs.py                the runs that a coordinator started
schema.py              checks and shows a schema
similarity.py          SimFL, which has no epsilon
statement.py           what a model promises
train.py               trains a model over parties
tree.py                one readable tree as text, rules, picture or JSON
verify.py              whether a model is what the ledgers of its makers say
vertical.py            parties with different columns of the same people
warm.py                compiles loops ahead of time
"""
