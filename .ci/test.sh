#!/usr/bin/env bash
# What `make test` runs: every check, in the order in which a failure is cheapest to find.
# Prints what each step took, and the test runners' own closing lines once more at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
logs=${CARGO_TARGET_DIR:-target}/test-logs
rm -rf "$logs"; mkdir -p "$logs"
summary=()

step() { # step NAME COMMAND...
  local name=$1 log="$logs/$1.log" start=$SECONDS; shift
  echo "== $name: $*"
  if "$@" 2>&1 | tee "$log"; then
    summary+=("$(printf '%-12s %4d s  %s' "$name" $((SECONDS - start)) \
      "$(grep -aE '^ +Summary \[|^test result:' "$log" | tail -n1 | sed 's/^ *//')")")
  else
    echo "== $name FAILED after $((SECONDS - start)) s (whole output: $log)"; exit 1
  fi
}

# Browser packages are compiled for wasm32 only, or natively only; nothing is compiled for both without need.
native=(--workspace --exclude oom-ledger-site --exclude oom-ledger-web-tests)
wasm=(--target wasm32-unknown-unknown)
CHROMEDRIVER=$(command -v chromedriver)
export CHROMEDRIVER CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER=wasm-bindgen-test-runner

step fetch cargo fetch --locked
step format cargo fmt --all --check
step clippy cargo clippy --locked "${native[@]}" --all-targets -- -D warnings
step clippy-web cargo clippy --locked "${wasm[@]}" -p oom-ledger-site -p oom-ledger-web-tests --all-targets -- -D warnings
step native cargo nextest run --locked "${native[@]}" --exclude oom-ledger-e2e
step doctests cargo test --locked --doc -p oom-ledger-core
step core-in-web cargo test --locked "${wasm[@]}" --release -p oom-ledger-web-tests
step page make --no-print-directory page
step end-to-end cargo nextest run --locked -p oom-ledger-e2e

echo "== all passed in $SECONDS s"
printf '%s\n' "${summary[@]}"
