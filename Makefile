# make run | test | check | bench | setup — each sets up what it needs, and may be run again.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
WORKERS ?= 2
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)

.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow check format bench plotly changelog clean

help:  ## show this help
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## create .venv with all that running, testing and benchmarking need

$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (a few minutes on the first run) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "  1/2 torch"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@echo "  2/2 Equipoise and the tools to test it"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	@rm -f $(VENV)/.ready-*; touch $(STAMP)
	@echo "Ready: $$($(BIN)/python --version) in $(VENV)."

run: setup  ## the main job on embedded data: out/report.html
	@$(BIN)/equipoise report --out out --budget 150s
	@echo "Open out/report.html in a browser."

test: setup  ## all tests but the slow ones
	@OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)
	@echo "All tests passed. Longer ones: make test-slow. Benchmarks: make bench."

test-slow: setup  ## the tests marked slow
	@$(BIN)/python -m pytest -m slow $(TESTS)

check: setup  ## ruff, mypy --strict, import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=src $(BIN)/lint-imports --no-cache
	@echo "Style, types and layers hold."

format: setup  ## let ruff fix what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup  ## the speed benchmarks, as ratios between things timed in one run
	@$(BIN)/python -m pytest benchmarks -p no:cacheprovider --benchmark-columns=min,median,rounds -m ''
	@echo "The studies of the papers: .venv/bin/equipoise bench list"

PLOTLY ?= 4.1.1
plotly:  ## fetch the plot library that pages carry (needs npm): make plotly PLOTLY=4.1.1
	@cd $$(mktemp -d) && npm pack --silent plotly.js-cartesian-dist-min@$(PLOTLY) && tar xzf *.tgz \
	  && cp package/plotly-cartesian.min.js $(CURDIR)/src/equipoise/report/page/ \
	  && cp package/LICENSE $(CURDIR)/src/equipoise/report/page/plotly-LICENSE

changelog: setup  ## fold changes/ into CHANGELOG.md
	@$(BIN)/towncrier build --yes

clean:  ## remove what was built
	@rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
