#!/usr/bin/env bash
# A bank, a telephone company and a shop with the same customers: train over the columns of all three.
# bash examples/shared_customers/run.sh [FOLDER]; without a folder it uses a temporary one.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
folder="${1:-$(mktemp -d)}"
mkdir -p "$folder"
python "$here/make_tables.py" "$folder"
cd "$folder"

say() { printf '\n$ %s\n' "$*"; "$@"; }

# Gradients as they are: the telephone company and the shop could read every label.
say hedgerow vertical train --schema schema.toml --id customer --protection none --trees 15 \
    --depth 3 --data bank.csv --data phone.csv --data shop.csv --out model-none

# Labels randomised once by the bank: whatever the others see follows from noisy labels.
say hedgerow vertical train --schema schema.toml --id customer --protection ldp --epsilon 1 \
    --trees 15 --depth 3 --data bank.csv --data phone.csv --data shop.csv --out model-ldp

# New customers: all three are asked which way they go.
for model in none ldp; do
    say hedgerow vertical predict "model-$model" --id customer --data bank=new-bank.csv \
        --data phone=new-phone.csv --data shop=new-shop.csv --out "predicted-$model.csv" > /dev/null
done
head -n 3 predicted-ldp.csv
echo
python "$here/compare.py" .
