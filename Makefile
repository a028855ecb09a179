# The main targets are `demo` and `test`. Both install what they need on Debian and Ubuntu.

CARGO := scripts/cargo

# Tests run mkfs and losetup, which are not on the path of ordinary users.
export PATH := $(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help
.PHONY: help deps build book demo test bench fmt lint tidy clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

deps: ## Install the packages needed to build, test and demonstrate foreread (apt, sudo)
	@scripts/deps

build: ## Build target/release/foreread
	$(CARGO) build --release --locked -p foreread

MDBOOK := target/mdbook/bin/mdbook

book: $(MDBOOK) ## Build the book with search in target/book
	@$(MDBOOK) build

# Without its server and its watcher it needs half the crates.
$(MDBOOK):
	@$(CARGO) install mdbook --version 0.5.4 --locked --no-default-features --features search \
	    --root target/mdbook

demo: deps ## Tune a virtual disk array and print the recommendation (a few minutes)
	@$(CARGO) build --release --locked -p foreread
	@scripts/demo

test: deps ## Run every check that can run here; name the others
	@$(CARGO) run --quiet --locked -p xtask -- test

bench: deps ## Measure foreread against its peers (on an idle machine)
	@$(CARGO) build --release --locked -p foreread
	@$(CARGO) run --release --locked --quiet -p foreread-vdisk --example pace
	@$(CARGO) bench --locked -p foreread-bench
	@$(CARGO) bench --locked -p foreread-sim
	@$(CARGO) bench --locked -p foreread-doctor
	@$(CARGO) bench --locked -p foreread-observe
	@$(CARGO) run --release --locked -p foreread-fleet --example hosts
	@$(CARGO) bench --locked -p foreread --bench report
	@$(CARGO) bench --locked -p foreread --bench auto
	@$(CARGO) run --locked --quiet -p xtask -- tune-vs-grid

fmt: ## Format the code
	@$(CARGO) fmt --all

lint: ## Compile with all lints as errors
	@$(CARGO) clippy --target-dir target/lint --locked --workspace --all-targets -- -D warnings

tidy: ## Check the rules of the workspace
	@$(CARGO) run --quiet --locked -p xtask -- tidy

clean: ## Remove build output
	@$(CARGO) clean
