# make run | test | check | docs | bench | setup — each sets up what it needs, and may be run again.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
WORKERS ?= 2
RESOLVED_PYTHON ?= 3.11
EXTRAS ?= report
TOOLS := .venv-tools/bin
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)

.DEFAULT_GOAL := help
.PHONY: help setup setup-verified run test test-slow test-lowest test-newest check docs audit hashes format bench plotly changelog dist clean

help:  ## show this help
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## create .venv with all that running, testing and benchmarking need

$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (a few minutes on the first run) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "  1/2 torch"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@echo "  2/2 Equipoise and the tools to test it"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev,docs]'
	@rm -f $(VENV)/.ready-*; touch $(STAMP)
	@echo "Ready: $$($(BIN)/python --version) in $(VENV)."

setup-verified:  ## the same, and pip checks the SHA-256 of every package but torch, whose build differs by platform
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r constraints-hashes.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@rm -f $(VENV)/.ready-*; touch $(STAMP)

run: setup  ## the main job on embedded data: out/report.html
	@$(BIN)/equipoise report --out out --budget 150s
	@echo "Open out/report.html in a browser."

test: setup  ## all tests but the slow ones
	@OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)
	@echo "All tests passed. Longer ones: make test-slow. Benchmarks: make bench."

test-slow: setup  ## the tests marked slow
	@$(BIN)/python -m pytest -m slow $(TESTS)

# Tests of the rooms that need no torch, which is too large to fetch in two more versions.
LEAST = $(shell grep -rLE 'torch|equipoise[. ](training|networks|losses|classifiers|generative|oversampling)' --include='test_*.py' \
  tests/core tests/metrics tests/datasets tests/diagnosis tests/report tests/theory)

test-lowest: $(TOOLS)/deptry  ## the tests of the core with the lowest versions that pyproject.toml allows
	@$(MAKE) --no-print-directory test-resolved RESOLUTION=lowest-direct

test-newest: $(TOOLS)/deptry  ## the same with the newest versions that an index has
	@$(MAKE) --no-print-directory test-resolved RESOLUTION=highest

test-resolved:
	@echo "Setting up .venv-$(RESOLUTION) ..."
	@$(TOOLS)/uv pip compile --quiet --no-header --no-annotate --resolution $(RESOLUTION) --python-version $(RESOLVED_PYTHON) \
	  $(addprefix --extra ,$(EXTRAS)) pyproject.toml -o .venv-$(RESOLUTION).txt
	@$(TOOLS)/uv venv --quiet --allow-existing --python $(RESOLVED_PYTHON) .venv-$(RESOLUTION)
	@$(TOOLS)/uv pip install --quiet --python .venv-$(RESOLUTION) -r .venv-$(RESOLUTION).txt
	@$(TOOLS)/uv pip install --quiet --python .venv-$(RESOLUTION) --no-deps -e .
	@$(TOOLS)/uv pip install --quiet --python .venv-$(RESOLUTION) pytest pytest-timeout hypothesis
	@OMP_NUM_THREADS=1 .venv-$(RESOLUTION)/bin/python -m pytest -p no:cacheprovider -W default $(or $(TESTS),$(LEAST))
	@echo "The core's tests pass with $(RESOLUTION) versions on Python $(RESOLVED_PYTHON)."

docs: setup  ## the site, into docs/_build/html; needs no network, and warnings are errors
	@OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@$(BIN)/python docs/check_links.py docs/_build/html
	@echo "Open docs/_build/html/index.html in a browser."

check: setup  ## ruff, mypy --strict, import layers, docstrings
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=src $(BIN)/lint-imports --no-cache
	@PYTHONPATH=src $(BIN)/python tools/check_docstrings.py
	@echo "Style, types, layers and docstrings hold."

$(TOOLS)/deptry:
	@$(PYTHON) -m venv .venv-tools
	@$(TOOLS)/python -m pip install --quiet --disable-pip-version-check pip-audit pip-licenses deptry uv

audit: setup $(TOOLS)/deptry  ## known vulnerabilities, licenses and undeclared imports of the dependencies
	@diff <(grep -oE '^[A-Za-z0-9._-]+==[^ ]+' constraints.txt | grep -v '^torch==' | tr A-Z_ a-z- | sort) \
	  <(grep -oE '^[A-Za-z0-9._-]+==[^ ]+' constraints-hashes.txt | tr A-Z_ a-z- | sort) \
	  || { echo "constraints-hashes.txt is behind constraints.txt: run make hashes."; exit 1; }
	@$(TOOLS)/deptry src
	@$(TOOLS)/pip-licenses --python=$(BIN)/python --partial-match --fail-on='GPLv2;GPLv3;GPL-2.0;GPL-3.0;AGPL' >/dev/null
	@echo "Declared imports and licenses are in order."
	@said=$$($(TOOLS)/pip-audit --no-deps --disable-pip -r constraints-hashes.txt 2>&1); code=$$?; \
	  if grep -qE '^Found [0-9]+ known vulnerabilit' <<<"$$said"; then echo "$$said"; exit 1; \
	  elif [ $$code -ne 0 ] || grep -q 'could not be audited' <<<"$$said"; then \
	    missed=$$(grep -c 'could not be audited' <<<"$$said"); [ $$missed -gt 0 ] || missed=all; \
	    echo "Known vulnerabilities of $$missed packages were not checked: the service that lists them did not answer." \
	      "Run make audit again where it can be reached."; \
	  else echo "No known vulnerabilities."; fi

hashes: $(TOOLS)/deptry  ## write constraints-hashes.txt anew, after a change of constraints.txt
	@$(TOOLS)/uv pip compile --quiet --no-deps --generate-hashes --no-annotate --no-header --no-emit-package torch \
	  --python-version 3.11 constraints.txt -o constraints-hashes.txt

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

dist: $(TOOLS)/deptry  ## the wheel and the source archive in dist/, checked
	@$(TOOLS)/python -m pip install --quiet --disable-pip-version-check build twine
	@rm -rf dist && $(TOOLS)/python -m build --outdir dist . >/dev/null
	@$(TOOLS)/python -m twine check --strict dist/*

clean:  ## remove what was built
	@rm -rf $(VENV) .venv-* docs/_build docs/gallery docs/results docs/reference/generated docs/reference/*.rst out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
