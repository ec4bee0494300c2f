# Everything here works on a machine with nothing but Python 3.11 or newer: the first target that
# needs it makes a virtual environment in .venv, and makes it anew after pyproject.toml changed.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
MARKED = $(VENV)/.$(1)
# A virtual environment of a Python in a folder, with what the tests need.
INSTALLED = $(1) -m venv --clear $(2) && \
  $(1) .ci/requirements.py $(3) >$(2)/requirements.txt && \
  $(2)/bin/python -m pip install --quiet --only-binary :all: -r $(2)/requirements.txt && \
  $(2)/bin/python -m pip install --quiet --no-deps --editable .
PYTHONS := python3.11 python3.12 python3.13 python3.14 \
  $(wildcard $(HOME)/.pyenv/versions/3.1[1-4].*/bin/python)
VERSION := import sys; print("%d.%d%s" % (*sys.version_info[:2], getattr(sys, "abiflags", "")))
INTERPRETED := $(addprefix tests/unit/,test_arguments.py test_call_boundary.py test_collector.py \
  test_interpreters.py test_patched.py test_thread_pool.py) $(addprefix tests/numeric/, \
  test_artefacts.py test_end_to_end.py test_foreign_arrays.py test_threads.py)

# A processor without AVX-512, as which the tests of what schedules decide run too.
OLDER := $(if $(filter x86_64,$(shell uname -m)),x86-64-v3)
SCHEDULED := $(addprefix tests/numeric/test_,attention.py edges.py every_width.py independence.py \
  long_sums.py masked_stores.py math_functions.py narrow_rows.py parts_of_products.py \
  residual_blocks.py rows_of_products.py softmax.py visible_rounding.py) \
  tests/unit/test_outputs.py tests/unit/test_stated_host.py

# Tests start many processes, which read the bytecode that the first one wrote.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-oldest test-older test-pythons unit numeric guard mutants \
  breaks fuzz lit conformance public docs lint format types bench weights wheels clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /|/' | \
	  awk -F'|' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: $(call MARKED,run) ## a GCN on the karate club and an MLP on digits, compiled and timed
	@$(BIN)/stepwell demo

test: $(call MARKED,test) ## unit, numeric and lit tests, all but those marked slow
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-all: $(call MARKED,test) ## all tests, with the oldest dependencies and all Pythons too
	$(BIN)/python -m pytest -n auto --dist worksteal
	$(if $(OLDER),STEPWELL_HOST=$(OLDER) $(BIN)/python -m pytest -n auto --dist worksteal)
	$(MAKE) test-oldest test-pythons

test-oldest: $(call MARKED,oldest) ## what `make test` runs, with the oldest dependencies allowed
	$(VENV)/oldest/bin/python -m pytest -n auto --dist worksteal -m "not slow"

test-older: $(call MARKED,test) ## tests of what schedules decide, as on a machine without AVX-512
	STEPWELL_HOST=$(OLDER) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(SCHEDULED)

test-pythons: $(call MARKED,venv) ## tests of what depends on the interpreter, with each of PYTHONS
	@tried=; for p in $(PYTHONS); do \
	  v=$$($$p -c '$(VERSION)' 2>/dev/null) || { echo "$$p: not on this machine"; continue; }; \
	  case " $$tried " in *" $$v "*) continue;; esac; case $$v in *t) continue;; esac; \
	  tried="$$tried $$v"; \
	  echo "== $$p ($$v)"; $(call INSTALLED,$$p,$(VENV)/with/$$v,) && \
	  $(VENV)/with/$$v/bin/python -m pytest -n auto $(INTERPRETED) || exit 1; \
	done

unit: $(call MARKED,test) ## the unit tests alone
	$(BIN)/python -m pytest -n auto --dist worksteal tests/unit

numeric: $(call MARKED,test) ## the numeric tests alone
	$(BIN)/python -m pytest -n auto --dist worksteal tests/numeric

guard: $(call MARKED,test) ## the numeric tests with each buffer against an unmapped page
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --guarded front tests/numeric
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --guarded back tests/numeric

mutants: $(call MARKED,test) ## damaged files of all kinds, SEEDS=first:last of each
	$(BIN)/python -m tests.fuzz.mutants --seeds $(or $(SEEDS),0:100)

breaks: $(call MARKED,test) ## planted mistakes, and the tests that notice them
	$(BIN)/python -m tests.breaks

lit: $(call MARKED,test) ## the tests of IR text alone
	$(BIN)/lit -sv tests/lit

conformance: $(call MARKED,test) ## the cases of the onnx package's suite that are listed as passing
	$(BIN)/python -m pytest -n auto --dist worksteal tests/numeric/test_onnx_suite.py

fuzz: $(call MARKED,test) ## random modules against the reference: make fuzz MINUTES=60
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) --record

public: $(call MARKED,test) ## write again what is made from the code: tests/public/, the reference
	$(BIN)/python -m pytest -q -n 0 --renew-public tests/unit/test_public_face.py \
	  tests/unit/test_onnx_docs.py tests/unit/test_operator_stubs.py tests/unit/test_reference.py

docs: $(call MARKED,docs) ## the documentation as a site, in site/; links are checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

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
	$(BIN)/python benchmarks/run.py cases
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py call_boundary
	$(BIN)/python benchmarks/run.py passes
	$(BIN)/python benchmarks/run.py schedules
	$(BIN)/python benchmarks/run.py symbolic_batch
	$(BIN)/python benchmarks/run.py sparse_products
	$(BIN)/python benchmarks/run.py moves
	$(BIN)/python benchmarks/run.py operators
	$(BIN)/python benchmarks/run.py control_flow
	$(BIN)/python benchmarks/run.py stress

weights: $(call MARKED,run) ## train the weights of the demo again
	$(BIN)/python examples/train_karate.py
	$(BIN)/python examples/train_digits.py

wheels: $(call MARKED,venv) ## wheels of stepwell and of stepwell-runtime, and an sdist, in dist/
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python .ci/runtime_wheel.py dist

clean: ## remove everything that was built, the virtual environment included
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .ruff_cache .hypothesis

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

$(call MARKED,docs): $(call MARKED,run)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

$(call MARKED,oldest): $(call MARKED,venv) pyproject.toml
	$(call INSTALLED,$(BIN)/python,$(VENV)/oldest,--oldest)
	@touch $@
