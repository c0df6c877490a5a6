#!/usr/bin/env bash
# Three banks and a coordinator as processes of this machine; then one script trains over them.
# bash examples/python_over_sites/run.sh [FOLDER]; without a folder it uses a temporary one.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
folder="${1:-$(mktemp -d)}"
mkdir -p "$folder"
python "$here/make_tables.py" "$folder"
cd "$folder"
port="$(python -c 'import socket
with socket.create_server(("127.0.0.1", 0)) as free: print(free.getsockname()[1])')"

say() { printf '\n$ %s\n' "$*"; "$@" > /dev/null; }

# Keys, cards and a roster, as in docs/deployment.md; here one account has all sites.
say hedgerow coordinator init coordinator --listen "127.0.0.1:$port"
for bank in north east harbour; do say hedgerow party init "$bank"; done
cp ./*/*.card.toml .
say hedgerow federation roster ./*.card.toml --site coordinator --yes

trap 'kill $(jobs -p) && wait' EXIT
hedgerow coordinator start coordinator 2> coordinator.log &
for bank in north east harbour; do
    hedgerow party start "$bank" --roster roster.toml --yes --data "$bank.csv" \
        --schema schema.toml --id customer --limits limits.toml > "$bank.log" 2>&1 &
done

printf '\n$ python train.py coordinator schema.toml\n'
python "$here/train.py" coordinator schema.toml
hedgerow ledger show coordinator/ledger.sqlite
