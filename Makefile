# Every target sets itself up on a fresh machine: a .venv with the package and its development tools.

# The first Python that runs and is new enough. A version manager's shim may exist without its version, so it is run.
PYTHON ?= $(shell for p in python3.12 python3.11 python3; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
WORKERS ?= 2

BIN := .venv/bin
INSTALLED := .venv/.installed

# One XLA thread and one BLAS thread per test worker; compiled programs are kept between processes and runs.
TEST_ENV := NPROC=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg \
	JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.venv/xla-cache JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.2
PYTEST := $(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

.PHONY: demo test check pins fuzz bench docs lint types wheel clean
.DEFAULT_GOAL := check

demo: $(INSTALLED)
	$(BIN)/jaxbandits run examples/quickstart.toml --out runs/quickstart

test: lint types
	$(PYTEST)
	$(MAKE) --no-print-directory wheel

check: lint types
	$(PYTEST) -m "not slow"

# Write down what every algorithm computes now, once its results are the same or its version was raised.
pins: $(INSTALLED)
	PINS=write $(TEST_ENV) $(BIN)/python -m pytest tests/engine/test_contract.py -k pinned

# Random edits of random users' modules: does a store ever find results that the code no longer computes? EDITS_SEED: others.
fuzz: $(INSTALLED)
	$(TEST_ENV) EDITS=$${EDITS:-2000} $(BIN)/python -m pytest tests/sweeps/test_edits.py -k random_edits

bench: $(INSTALLED)
	@for script in benchmarks/*.py; do echo "$$script"; $(BIN)/python $$script || exit 1; done

docs: $(INSTALLED)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

wheel: $(INSTALLED)
	PYTHON=$(BIN)/python bash tests/wheel.sh

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or later with venv was found: install one, or run make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv

$(INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf build dist docs/_build runs .ruff_cache .pytest_cache .mypy_cache
