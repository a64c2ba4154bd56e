# Two commands do all the set-up: `make demo` and `make test`.  PYTHON may name any Python >= 3.11.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all kills serve-kills lint docs wheel bench clean

demo: .venv/base
	$(BIN)/dpbandits demo

# Groups of tests (tests/conftest.py) in the order of their files: those of src/, the shortest, last.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

# The tests start a hundred processes, which share the bytecode that the first of them keeps.
test test-all: export PYTHONDONTWRITEBYTECODE =

# What plays a few rounds runs without a compiler.
test: .venv/test
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "interpreted and not long"
	$(PYTEST) -m "not interpreted and not long" tests

# After `make test`, what takes minutes: statistical laws, audits, whole studies, and with compiled
# kernels what `make test` interprets.  In two runs, so that no process takes more than 1.1 GB.
AGAIN := long or (interpreted and not once)
test-all: test
	$(PYTEST) -m "$(AGAIN)" tests/conformance
	$(PYTEST) -m "$(AGAIN)" --ignore=tests/conformance

# Kills of policies at random moments, on all three stores: see tests/stores/kills.py.
kills: .venv/test
	$(BIN)/python tests/stores/kills.py --kills 2000

# Kills of a service under load, on SQLite and PostgreSQL: see tests/service/serve_kills.py.
serve-kills: .venv/test
	$(BIN)/python tests/service/serve_kills.py --kills 100

lint: .venv/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@git log -30 --format=%s | awk 'length > 72 {print "longer than 72 characters: " $$0; bad = 1} END {exit bad}'

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
