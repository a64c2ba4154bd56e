# Two commands do all the set-up: `make demo` and `make test`.  PYTHON may name any Python >= 3.11.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all lint bench clean

demo: .venv/base
	$(BIN)/dpbandits demo

# Groups of tests (tests/conftest.py) in the order of their files: those of src/, the shortest, last.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

# In four runs, so that none of their processes compiles so much that it takes more than 1 GB.
APART := tests/conformance tests/algorithms
PRIVATE_CONTEXTS := JDP or LDP or SDP

test: .venv/test
	$(PYTEST) -m "not long" tests/conformance -k "$(PRIVATE_CONTEXTS)"
	$(PYTEST) -m "not long" tests/conformance -k "not ($(PRIVATE_CONTEXTS))"
	$(PYTEST) -m "not long" tests/algorithms
	$(PYTEST) -m "not long" $(APART:%=--ignore=%)

# After `make test`, what takes minutes: statistical laws, audits, whole studies.
test-all: test
	$(PYTEST) -m long

lint: .venv/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/bench
	$(BIN)/python -m benchmarks

# A file of the environment's folder marks what has been installed into it.
.venv/base: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/%: .venv/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
