# Two commands do all the set-up: `make demo` and `make test`.  PYTHON may name any Python >= 3.11.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all lint docs wheel bench clean

demo: .venv/base
	$(BIN)/dpbandits demo

# Groups of tests (tests/conftest.py) in the order of their files: those of src/, the shortest, last.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

# In three runs, and of three processes where most is compiled, so that none of them takes more than
# 1.1 GB.
APART := tests/conformance tests/algorithms

test: .venv/test
	$(PYTEST) -n 3 -m "not long" tests/conformance
	$(PYTEST) -m "not long" tests/algorithms
	$(PYTEST) -m "not long" $(APART:%=--ignore=%)

# After `make test`, what takes minutes: statistical laws, audits, whole studies.
test-all: test
	$(PYTEST) -m long

lint: .venv/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation site, with its notebooks run; open site/index.html.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# What a stranger installs, installed as a stranger does: from the wheel, and far from this folder.
wheel: .venv/base
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv dist/venv
	dist/venv/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd dist && venv/bin/dpbandits demo --output demo

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
	rm -rf .venv dist site .audits .mypy_cache .pytest_cache .ruff_cache .hypothesis
