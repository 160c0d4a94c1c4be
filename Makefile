# deepcrawl. `make` lists what there is.

GO       ?= go
BIN      := bin
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  := -X main.version=$(VERSION)
FUZZTIME ?= 10s
SOAK_LONG ?= 20m
SOAK_SEED ?= 100
# Packages whose concurrency is their point; `make race RACE=./...` takes everything. sqlcoord and cmd spend minutes waiting for
# servers and processes there; what they run is the code of session, core and crawl.
RACE     ?= ./crawl ./crawl/frontier ./crawl/robots ./coord/core ./coord/session ./coord/memcoord ./coord/sim
# The pinned linter is built from its module once (about two minutes) and kept in bin/tools.
LINT_VERSION := v2.15.0
LINT     := $(BIN)/tools/golangci-lint-$(LINT_VERSION)

.DEFAULT_GOAL := help
.PHONY: help build test race print-race lint verify verify-large fuzz bench soak sim exhaust docs tidy-check vet clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/deepcrawl
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/deepcrawl ./cmd/deepcrawl

test: ## run all tests
	$(GO) test ./...

race: ## run the concurrent packages' tests under the race detector (RACE=./... for all)
	$(GO) test -race $(RACE)

print-race:
	@echo $(RACE)

vet: ## go vet
	$(GO) vet ./...

lint: $(LINT) ## run golangci-lint (rules and their reasons: .golangci.yml)
	$(LINT) run ./...

$(LINT):
	@mkdir -p $(BIN)/tools
	GOBIN='$(CURDIR)/$(BIN)/tools' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv $(BIN)/tools/golangci-lint $@

tidy-check: ## say whether go.mod and go.sum are tidy
	$(GO) mod tidy -diff

docs: ## write the generated pages again (docs/configuration.md)
	$(GO) test ./internal/config -run 'TestDocs' -update

# The generated pages are compared by tests (`make docs` writes them), so `race` and `test` are the docs check too.
verify: build vet lint race tidy-check ## what a change must pass: build, vet, lint, race, tidy, generated docs
	$(GO) test ./internal/config -run 'TestDocs'

verify-large: verify ## verify, then the tests that take minutes (DEEPCRAWL_TEST_LARGE=1)
	DEEPCRAWL_TEST_LARGE=1 $(GO) test -timeout 60m ./...

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@GO='$(GO)' FUZZTIME='$(FUZZTIME)' bash .ci/fuzz

bench: ## the side-by-side benchmarks of bench/ (its own module; what they measure: bench/README.md)
	cd bench && $(GO) run ./cmd/bench

SIM_TIME ?= 1m
sim: ## the coordination simulator for SIM_TIME (1m) on all processors, new worlds each time; SEED=N replays one with a trace
	$(GO) test -count=1 -v -timeout 0 -run 'TestSim$$' ./coord/sim -sim.time=$(SIM_TIME) $(if $(SEED),-sim.seed=$(SEED),-sim.from=$(shell date +%s)000 -sim.procs=0)

exhaust: ## every order of events in small worlds, to EXHAUST states each (1000000; 0: to the fixed point, which takes much memory)
	$(GO) test -count=1 -v -timeout 0 -run 'TestExhaustive' ./coord/sim -exhaust.max=$(EXHAUST)
EXHAUST ?= 1000000

soak: ## every sort of soak, then all faults for SOAK_LONG (20m) in pieces from SOAK_SEED (100) on; prints a table
	DEEPCRAWL_TEST_SOAK=1 $(GO) test -count=1 -v -timeout 0 -run '^TestRareFaults$$' ./coord/failover
	DEEPCRAWL_TEST_SOAK=1 $(GO) test -count=1 -v -timeout 0 -run '^TestSoakMatrix$$' ./cmd/deepcrawl -soak.long=$(SOAK_LONG) -soak.seed=$(SOAK_SEED)

clean: ## remove what was built
	rm -rf $(BIN)
