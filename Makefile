# Every target sets itself up on a fresh machine: a .venv with the package and its development tools.

# The first of these that is found. Python 3.11, whose last JAX is 0.10, comes first: there the tests compare bits that newer
# releases do not keep (tests/last_bits.py). pip gives each Python the newest JAX that it can have.
PYTHON ?= $(shell bash tests/interpreter.sh 3.11 3.12 3.13)
MATRIX ?= 3.11-0.10 3.12-0.11 3.13-0.12
WORKERS ?= 2

BIN := .venv/bin
INSTALLED := .venv/.installed

# One XLA thread and one BLAS thread per test worker; compiled programs are kept between processes and runs. XLA divides a
# program into 32 modules to compile them on several threads, which with one thread costs a third more.
ONE_THREAD := NPROC=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.2 \
	XLA_FLAGS=--xla_cpu_parallel_codegen_split_count=1
TEST_ENV := $(ONE_THREAD) JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.venv/xla-cache
# Warnings that tests expect would bury the names of those that fail.
PYTEST := $(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --disable-warnings

.PHONY: demo test check test-matrix pins planted fuzz exhaustive bench gpu-static reproductions docs notebooks lint types wheel clean
.DEFAULT_GOAL := check

demo: $(INSTALLED)
	$(BIN)/jaxbandits run examples/quickstart.toml --out runs/quickstart

test: lint types
	$(PYTEST)
	$(MAKE) --no-print-directory wheel

check: lint types
	$(PYTEST) -m "not slow"

# Types and the quick tests on every pair of Python and JAX in MATRIX whose Python is found here.
test-matrix:
	$(ONE_THREAD) WORKERS=$(WORKERS) bash tests/matrix.sh $(MATRIX)

# Write down what every algorithm computes now, once its results are the same or its version was raised.
pins: $(INSTALLED)
	PINS=write $(TEST_ENV) $(BIN)/python -m pytest tests/engine/test_contract.py -k pinned

# Write down which errors the tests plant, and where each is caught: tests/planted.md.
planted: $(INSTALLED)
	PLANTED=write $(TEST_ENV) $(BIN)/python -m pytest tests/pages/test_planted.py -k in_the_table

# Random edits of random users' modules: does a store ever find results that the code no longer computes? EDITS_SEED: others.
fuzz: $(INSTALLED)
	$(TEST_ENV) EDITS=$${EDITS:-2000} $(BIN)/python -m pytest tests/sweeps/test_edits.py -k random_edits

# The tests that `make test` has no time for. It runs others of the same kind, but for some long single tests.
exhaustive: $(INSTALLED)
	$(PYTEST) -m exhaustive

bench: $(INSTALLED)
	@for script in benchmarks/*.py; do echo "$$script"; $(BIN)/python $$script || exit 1; done

# The papers' figures at full size, into docs: hours at first; what runs/reproductions holds is not computed again.
# STUDY: a paper, or PAPER/FIGURE.
reproductions: $(INSTALLED)
	$(BIN)/jaxbandits reproduce $(or $(STUDY),all) --full --docs docs

# What every algorithm would do on a GPU. It is also compiled for one where JAX's CUDA plugin is installed (docs/performance.md).
gpu-static: $(INSTALLED)
	$(BIN)/python benchmarks/gpu_static.py

docs: $(INSTALLED)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# The notebooks at full size, with what they print and draw. NOTEBOOK: one or several names.
notebooks: $(INSTALLED)
	$(BIN)/python notebooks/refresh.py $(NOTEBOOK)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports > /dev/null || $(BIN)/lint-imports

types: $(INSTALLED)
	$(BIN)/mypy

wheel: $(INSTALLED)
	PYTHON=$(BIN)/python bash tests/wheel.sh

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11, 3.12 or 3.13 with venv was found: install one, or run make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv

$(INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf build dist docs/_build docs/api docs/gallery runs .ruff_cache .pytest_cache .mypy_cache
