# Every task is one command. Tools that are missing are installed once, outside the clone (.ci/tools.sh).

OOM_LEDGER_TOOLS ?= $(HOME)/.cache/oom-ledger/tools
export OOM_LEDGER_TOOLS
export PATH := $(OOM_LEDGER_TOOLS)/bin:$(OOM_LEDGER_TOOLS)/npm/node_modules/.bin:$(PATH)
PORT ?= 8080

.PHONY: help serve build page test bench accuracy screenshots sizes
.DEFAULT_GOAL := help

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null

serve: build ## build the site and open it on 127.0.0.1 (PORT=8080, or the next free one)
	@cargo run --quiet --locked -p oom-ledger-serve -- dist $(PORT)

build: ## build the static site into dist/
	@.ci/tools.sh build
	@cargo fetch --locked
	@$(MAKE) --no-print-directory page

# The build alone, tools and crates being there.
page:
	trunk build --release --cargo-profile web

test: ## format, lints, native, wasm and browser tests
	@.ci/tools.sh test
	@.ci/test.sh

bench: ## speed of the core
	cargo bench -p oom-ledger-benches

accuracy: ## error per expectation of a case file: make accuracy CASES=file.jsonl
	@cargo run --quiet --locked --release -p oom-ledger-accuracy -- $(CASES) $(ACCURACY_FLAGS)

screenshots: build ## pictures of the page at two widths, themes and languages: OUT=target/screenshots
	@.ci/tools.sh test
	cargo run --quiet --locked -p oom-ledger-e2e --bin screenshots -- $(or $(OUT),target/screenshots)

sizes: ## what the wasm of the page is made of
	@node .ci/wasm-size.mjs
