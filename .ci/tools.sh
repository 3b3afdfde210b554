#!/usr/bin/env bash
# Installs what a build (`.ci/tools.sh build`) or the tests (`.ci/tools.sh test`) need and what is missing.
# Quick when nothing is: every tool is asked for its version first. Tools live outside the clone, in
# $OOM_LEDGER_TOOLS (default ~/.cache/oom-ledger/tools), so that all clones share them. Everything comes from
# a package registry: crates by cargo, npm packages by npm, Chromium and Node by apt.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-build}
tools=${OOM_LEDGER_TOOLS:-$HOME/.cache/oom-ledger/tools}
trunk=0.21.14
nextest=0.9.143
# One pin for the crate and for the tool: they must be equal.
bindgen=$(sed -n 's/^wasm-bindgen = "=\([0-9.]*\)"$/\1/p' Cargo.toml)

say() { echo "tools: $*" >&2; }
fail() { say "$*"; exit 1; }
version_is() { [ "$("$1" --version 2>/dev/null | head -n1 | cut -d' ' -f2)" = "$2" ]; }

# apt_get COMMAND PACKAGE...: installs the packages when the command is missing.
updated=
apt_get() {
  local command=$1; shift
  command -v "$command" >/dev/null && return
  command -v apt-get >/dev/null || fail "$command is missing and there is no apt-get: install it by hand"
  local sudo=; [ "$(id -u)" = 0 ] || sudo=sudo
  [ -n "$updated" ] || { $sudo apt-get update -q; updated=1; }
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends "$@"
}

# cargo_get ARGUMENTS...: cargo install with cheap settings. In its published profile (fat LTO, one codegen
# unit) trunk's last crate alone costs more than 15 CPU minutes; these tools need no speed.
cargo_get() {
  CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    CARGO_PROFILE_RELEASE_DEBUG=0 env -u CARGO_TARGET_DIR -u RUSTFLAGS cargo install --root "$tools" "$@"
}

command -v cargo >/dev/null || fail "Rust is missing: install rustup, see https://rustup.rs"
mkdir -p "$tools/npm"
# Two clones at once: the second waits.
if command -v flock >/dev/null; then exec 8>"$tools/lock"; flock 8; fi

[ -d "$(rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null)" ] ||
  rustup target add wasm32-unknown-unknown
apt_get node nodejs npm
apt_get npm npm
version_is "$tools/bin/trunk" "$trunk" ||
  cargo_get --locked --no-default-features --features rustls "trunk@$trunk"
# Without --locked when its lock file names a version that the registry no longer serves.
version_is "$tools/bin/wasm-bindgen" "$bindgen" ||
  cargo_get --locked --no-default-features "wasm-bindgen-cli@$bindgen" ||
  cargo_get --no-default-features "wasm-bindgen-cli@$bindgen"
if ! cmp -s .ci/tools/package-lock.json "$tools/npm/installed.json"; then
  cp .ci/tools/package.json .ci/tools/package-lock.json .ci/tools/.npmrc "$tools/npm/"
  (cd "$tools/npm" && npm ci --no-progress >&2 && cp package-lock.json installed.json)
fi

if [ "$what" = test ]; then
  cargo nextest --version >/dev/null 2>&1 || cargo_get --locked "cargo-nextest@$nextest"
  apt_get chromium chromium
  apt_get chromedriver chromium-driver
  # Chinese needs a font, or the pictures show boxes and widths are wrong.
  [ -n "$(fc-list :lang=zh 2>/dev/null | head -n1)" ] || apt_get no-chinese-font fontconfig fonts-noto-cjk
fi
