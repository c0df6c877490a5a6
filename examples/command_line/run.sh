#!/usr/bin/env bash
# Three banks on the command line: check, plan, train, predict, and look at what was spent.
# bash examples/command_line/run.sh [FOLDER]; without a folder it uses a temporary one.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
folder="${1:-$(mktemp -d)}"
mkdir -p "$folder"
python "$here/make_tables.py" "$folder"
cd "$folder"

say() { printf '\n$ %s\n' "$*"; "$@"; }

# The public facts, and whether every table fits them. Nothing leaves a party.
say hedgerow schema check schema.toml --data north.csv --data east.csv --data harbour.csv

# What a run would ask and cost. Nobody is asked.
say hedgerow plan --schema schema.toml --epsilon 1 --delta 1e-6 --parties 3 --out plan.toml

# One --data per party. The rows are made up, so their ledger lies here too; leave --ledger out for
# real ones, and it goes to the state folder, where it counts whatever is trained on these files.
say hedgerow train --schema schema.toml --plan plan.toml --ledger loans.ledger \
    --data north.csv --data east.csv --data harbour.csv --out loans.hedge

say hedgerow predict loans.hedge --data new.csv --out predictions.csv
head -n 4 predictions.csv

# Measured on exact rows: for the owner of these rows only.
say hedgerow evaluate loans.hedge --data new.csv

say hedgerow statement loans.hedge
say hedgerow ledger show loans.ledger
say hedgerow ledger verify loans.ledger
