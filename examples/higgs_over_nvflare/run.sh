#!/usr/bin/env bash
# Three sites behind a stock NVFlare, all on this machine: bash examples/higgs_over_nvflare/run.sh [FOLDER]
# Without a folder it uses a temporary one. Everything it starts ends with it.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
folder="${1:-$(mktemp -d)}"
mkdir -p "$folder"
cd "$folder"
folder="$PWD"

say() { printf '\n$ %s\n' "$*"; "$@"; }

started=()
family() { for child in $(pgrep -P "$1"); do family "$child"; done; echo "$1"; }
finish() {
    all=()
    for pid in "${started[@]}"; do mapfile -t -O "${#all[@]}" all < <(family "$pid"); done
    kill "${all[@]}" 2>/dev/null || true
    sleep 3
    kill -9 "${all[@]}" 2>/dev/null || true
    wait
}
trap finish EXIT
begin() { # FILE COMMAND...: start it with its output in a file
    local log="$1"; shift
    printf '\n$ %s &\n' "$*"
    "$@" >"$log" 2>&1 </dev/null &
    started+=("$!")
}

python "$here/make_rows.py" .

# Keys and cards, made at each site; the coordinator has no port, because NVFlare has one.
say hedgerow coordinator init coordinator
for site in site-1 site-2 site-3; do say hedgerow party init "$site"; done
say hedgerow federation roster ./*/*.card.toml --name collisions --site coordinator --yes

# NVFlare as it comes. allow.py does what the administrators of its machines have to do once.
port="$(python -c 'import socket
with socket.create_server(("127.0.0.1", 0)) as free: print(free.getsockname()[1])')"
sed "s/PORT/$port/" "$here/project.yml" >project.yml
say nvflare provision -p project.yml -w nvflare --force >provision.log
kits="$folder/nvflare/collisions/prod_00"
say python "$here/allow.py" "$kits/localhost" "$folder/train.sock"
for site in site-1 site-2 site-3; do
    say python "$here/allow.py" "$kits/$site" "$folder/$site.sock" "$site"
done
for name in localhost site-1 site-2 site-3; do
    begin "nvflare-$name.log" bash "$kits/$name/startup/sub_start.sh" --once
done

# Each party's own process has the rows; NVFlare reaches it through a socket and carries bytes.
for site in site-1 site-2 site-3; do
    begin "$site.log" hedgerow party start "$site" --roster roster.toml --yes \
        --data "$site.csv" --schema schema.toml --relay-socket "$folder/$site.sock"
done

# The lead submits the relay; the server may still be starting.
for attempt in 1 2 3 4 5 6; do
    if say python "$here/job.py" "$kits/lead@example.org" >job.log 2>&1; then break; fi
    sleep 5
done
grep '^job ' job.log
for attempt in $(seq 120); do
    if [ -S train.sock ]; then break; fi
    sleep 1
done

say hedgerow train --engine "relay:$folder/train.sock" --site coordinator --schema schema.toml \
    --epsilon 1 --delta 1e-6 --out model.hedge --wait-seconds 180
say hedgerow evaluate model.hedge --data new.csv
say hedgerow statement model.hedge
