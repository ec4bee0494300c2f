# Everything here works on a machine with nothing but Python 3.11 or newer: the first target that
# needs it makes a virtual environment in .venv, and makes it anew after pyproject.toml changed.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
MARKED = $(VENV)/.$(1)

# Tests start many processes, which read the bytecode that the first one wrote.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all unit numeric lit conformance public lint format types bench \
  weights clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /|/' | \
	  awk -F'|' '{printf "  make %-9s %s\n", $$1, $$2}'

demo: $(call MARKED,run) ## a GCN on the karate club and an MLP on digits, compiled and timed
	@$(BIN)/stepwell demo

test: $(call MARKED,test) ## unit, numeric and lit tests, all but those marked slow
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-all: $(call MARKED,test) ## all tests, also those marked slow
	$(BIN)/python -m pytest -n auto --dist worksteal

unit: $(call MARKED,test) ## the unit tests alone
	$(BIN)/python -m pytest -n auto --dist worksteal tests/unit

numeric: $(call MARKED,test) ## the numeric tests alone
	$(BIN)/python -m pytest -n auto --dist worksteal tests/numeric

lit: $(call MARKED,test) ## the tests of IR text alone
	$(BIN)/lit -sv tests/lit

conformance: $(call MARKED,test) ## the cases of the onnx package's suite that are listed as passing
	$(BIN)/python -m pytest -n auto --dist worksteal tests/numeric/test_onnx_suite.py

public: $(call MARKED,test) ## write again what users rely on: tests/public/, docs/onnx.md
	$(BIN)/python -m pytest -q -n 0 --renew-public tests/unit/test_public_face.py \
	  tests/unit/test_onnx_docs.py

lint: $(call MARKED,test) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(call MARKED,test) ## let ruff repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# In the tree the package has the name of the folder it was cloned into: pyright finds `stepwell`
# as a link.
types: $(call MARKED,test) ## pyright
	@mkdir -p $(VENV)/named && ln -sfn ../.. $(VENV)/named/stepwell
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(call MARKED,run) ## time models beside all installed peers; calls, passes, schedules
	$(BIN)/python benchmarks/run.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/call_boundary.py
	$(BIN)/python benchmarks/passes.py
	$(BIN)/python benchmarks/schedules.py
	$(BIN)/python benchmarks/symbolic_batch.py
	$(BIN)/python benchmarks/sparse_products.py
	$(BIN)/python benchmarks/moves.py
	$(BIN)/python benchmarks/operators.py
	$(BIN)/python benchmarks/control_flow.py
	$(BIN)/python benchmarks/stress.py

weights: $(call MARKED,run) ## train the weights of the demo again
	$(BIN)/python examples/train_karate.py
	$(BIN)/python examples/train_digits.py

clean: ## remove everything that was built, the virtual environment included
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis

$(call MARKED,venv):
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3 ..."; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(call MARKED,run): $(call MARKED,venv) pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(call MARKED,test): $(call MARKED,run)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@
