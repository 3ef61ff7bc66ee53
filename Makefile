# Every target works from a fresh clone; the tools are pinned in internal/tools/go.mod.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c

# Nested modules stand on their own: a go.work is a convenience of the editor only.
export GOWORK := off

MODFILES := $(shell find . -name go.mod -not -path '*/testdata/*' -not -path './.*')
MODULES  := $(sort $(patsubst %/,%,$(dir $(MODFILES))))
CODE     := $(filter-out ./internal/tools,$(MODULES))
TOOL     := tool -modfile=$(CURDIR)/internal/tools/go.mod

BENCHTIME ?= 1s
FUZZTIME  ?= 10s

# each runs a go command in every module that holds code.
each = for module in $(CODE); do go -C $$module $(1); done

.DEFAULT_GOAL := help
.PHONY: help build test race check bench fuzz format vet fix staticcheck tidy race-short once vulncheck redis

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s  %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: ## compile every package, and the command into .build/prime
	$(call each,build ./...)
	go build -o .build/ ./cmd/prime

test: redis ## run every test in full, the long proofs included (gets redis-server first where it can)
	$(call each,test -timeout 20m ./...)

race: redis ## run every test in full under the race detector (slow)
	$(call each,test -race -timeout 30m ./...)

check: format vet fix staticcheck tidy race-short once vulncheck ## what CI runs beside `make test`

bench: redis ## run the benchmarks, BENCHTIME each
	$(call each,test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...)

fuzz: ## fuzz every decoder, FUZZTIME each
	./internal/tools/fuzz.sh $(FUZZTIME)

format: ## fail on files that gofumpt would change
	@echo 'gofumpt -l .'
	@files=$$(go $(TOOL) gofumpt -l .); if [ -n "$$files" ]; then echo "$$files"; exit 1; fi

vet: ## go vet
	$(call each,vet ./...)

fix: ## fail where `go fix` would modernise the code
	$(call each,fix -diff ./...)

staticcheck: ## staticcheck
	$(call each,$(TOOL) staticcheck ./...)

tidy: ## fail where `go mod tidy` would change a go.mod or go.sum
	for module in $(MODULES); do go -C $$module mod tidy -diff; done

race-short: redis ## run every test under the race detector, the long proofs shortened (-short)
	$(call each,test -race -short -timeout 20m ./...)

once: redis ## run every fuzz seed and every benchmark once
	$(call each,test -short -run '^Fuzz' -bench . -benchtime 1x -timeout 10m ./...)

vulncheck: ## look for known vulnerabilities, when the database can be reached
	./internal/tools/vulncheck.sh $(CODE)

redis: ## make sure that there is a redis-server to test with
	@./internal/tools/ensure-redis.sh
