# The two commands that matter are `make demo` and `make test`; both do all the set-up themselves
# on Debian and Ubuntu.

CARGO := scripts/cargo

# Tests start mkfs and losetup, which ordinary users do not have on their path.
export PATH := $(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help
.PHONY: help deps build demo test bench fmt lint tidy clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

deps: ## Install what is missing to build, test and show foreread (apt; uses sudo)
	@scripts/deps

build: ## Build target/release/foreread
	$(CARGO) build --release --locked -p foreread

demo: deps ## Tune a virtual disk array and print the verdict: a few minutes
	@$(CARGO) build --release --locked -p foreread
	@scripts/demo

test: deps ## Run every check that can run here, and name those that can't
	@$(CARGO) run --quiet --locked -p xtask -- test

bench: deps ## Measure foreread itself against its peers; leave the machine alone meanwhile
	@$(CARGO) build --release --locked -p foreread
	@$(CARGO) run --release --locked --quiet -p foreread-vdisk --example pace
	@$(CARGO) bench --locked -p foreread-bench
	@$(CARGO) bench --locked -p foreread-sim
	@$(CARGO) bench --locked -p foreread-diagnose
	@$(CARGO) bench --locked -p foreread-observe
	@$(CARGO) bench --locked -p foreread --bench report
	@$(CARGO) bench --locked -p foreread --bench auto
	@$(CARGO) run --locked --quiet -p xtask -- tune-vs-grid

fmt: ## Format the code
	@$(CARGO) fmt --all

lint: ## Compile with all lints as errors
	@$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

tidy: ## Check the rules of the house
	@$(CARGO) run --quiet --locked -p xtask -- tidy

clean: ## Remove what was built
	@$(CARGO) clean
