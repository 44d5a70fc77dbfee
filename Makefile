# Every target sets itself up on a fresh machine: a .venv with the package and its development tools.

# The first of these that is found. Python 3.11, whose last JAX is 0.10, comes first: there the tests compare bits that newer
# releases do not keep (tests/last_bits.py). pip gives each Python the newest JAX that it can have.
PYTHON ?= $(shell bash tests/interpreter.sh 3.11 3.12 3.13)
MATRIX ?= 3.11-0.10 3.12-0.11 3.13-0.12
WORKERS ?= 2

# Modules are compiled to bytecode once, also where the environment says that it is not to be kept.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
INSTALLED := .venv/.installed

# How tests are run, threads, caches and compilers' options included, is in tests/settings.py. Warnings that tests expect would
# bury the names of those that fail.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --disable-warnings

.PHONY: stubs demo quick test pages exhaustive test-matrix lowest pins planted mutants fuzz bench gpu-static reproductions compare verdicts docs notebooks lint types wheel publish release dist clean
.DEFAULT_GOAL := quick

demo: $(INSTALLED)
	$(BIN)/jaxbandits run examples/quickstart.toml --out runs/quickstart

# Before each commit: what the change since the last commit on main can break, for a minute and a half at most.
quick:
	@echo "make quick: lint, types, and the tests that your change can break; under 2 minutes once installed"
	@$(MAKE) --no-print-directory lint types
	$(PYTEST) --quick -m "not pages"

# What decides whether a change may land, with `make pages`.
test:
	@echo "make test: installation, lint, types and tests; at most 15 minutes on two idle cores"
	@$(MAKE) --no-print-directory lint types
	$(PYTEST) -m "not pages" tests

pages:
	@echo "make pages: documentation, docstrings, gallery, notebooks, examples, blocks of pages, the wheel, and programs for absent GPUs; at most 15 minutes on two idle cores"
	@$(MAKE) --no-print-directory $(INSTALLED)
	$(PYTEST) -m pages
	@$(MAKE) --no-print-directory wheel
	@bash tests/absent_gpus.sh

# Before a release: every case of kinds of which `make test` and `make pages` run a part (tests/dealt.py).
# Then what annotations say is checked at every call: imports take seven times as long so.
exhaustive: $(INSTALLED)
	$(PYTEST) --exhaustive
	CHECK_ANNOTATIONS=1 $(PYTEST) -k "not bad_input" tests/engine/test_contract.py tests/sweeps/test_sweep.py \
		tests/sweeps/test_tune.py tests/privacy/test_audit.py tests/pages/test_statistics.py

# Types and all tests but those of pages on every pair of Python and JAX in MATRIX whose Python is found here.
test-matrix:
	WORKERS=$(WORKERS) bash tests/matrix.sh $(MATRIX)

# What uses other libraries most, with the lowest versions of them that pyproject.toml allows. Once a week: .ci/weekly.
lowest:
	WORKERS=$(WORKERS) bash tests/lowest.sh

# How many small errors the tests notice: NUMBER of them, which takes hours. It goes on where it stopped. ROOM: of one
# room, or of a half of them (trust, elsewhere).
NUMBER ?= 200
mutants: $(INSTALLED)
	$(BIN)/python benchmarks/mutants.py --number $(NUMBER) --workers $(WORKERS) $(if $(ROOM),--room $(ROOM))

# Write down what every algorithm computes now. CHANGED: names of cases, with commas, whose results are meant to change.
pins: $(INSTALLED)
	PINS=write CHANGED="$(CHANGED)" $(BIN)/python -m pytest tests/engine/test_pins.py -k pinned

# Write down which errors the tests plant, and where each is caught: tests/planted.md.
planted: $(INSTALLED)
	PLANTED=write $(BIN)/python -m pytest tests/pages/test_planted.py -k is_declared

# Random edits of random users' modules: does a store ever find results that the code no longer computes? EDITS_SEED: others.
fuzz: $(INSTALLED)
	EDITS=$${EDITS:-2000} $(BIN)/python -m pytest tests/sweeps/test_edits.py -k random_edits

bench: $(INSTALLED)
	@for script in benchmarks/*.py; do echo "$$script"; $(BIN)/python $$script || exit 1; done

# The papers' figures at full size, into docs: hours at first; what runs/reproductions holds is not computed again.
# STUDY: a paper, or PAPER/FIGURE.
reproductions: $(INSTALLED)
	$(BIN)/python docs/reproduce.py $(or $(STUDY),all)

# What the papers' figures at full size, computed anew in runs/comparison, have that the pages do not.
compare: $(INSTALLED)
	$(BIN)/python docs/reproduce.py --compare $(or $(STUDY),all)

# The words of the papers' claims, from jaxbandits/papers/verdicts.toml, into the page of verdicts and the reproductions.
verdicts: $(INSTALLED)
	$(BIN)/python docs/verdicts.py

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
	$(BIN)/python benchmarks/anatomy.py check

types: stubs
	@echo "mypy reads the package: half a minute, seconds later"
	@$(BIN)/mypy

# What type checkers and editors read of the public names, and git does not keep.
stubs: $(INSTALLED)
	@$(BIN)/python -m jaxbandits.stubs > /dev/null

wheel: $(INSTALLED)
	PYTHON=$(BIN)/python bash tests/wheel.sh

# The project's address and authors, once they are known: make publish REPOSITORY=https://github.com/OWNER/NAME AUTHORS="Ada Lovelace <ada@example.org>"
publish: $(INSTALLED)
	$(BIN)/python .github/publish.py --repository "$(REPOSITORY)" --authors "$(AUTHORS)"

# A release, on this machine alone: version, commit, tag, and its files in dist/. VERSION=0.3.0
release: $(INSTALLED)
	$(BIN)/python .github/release.py "$(VERSION)"

dist: $(INSTALLED)
	$(BIN)/python .github/release.py

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11, 3.12 or 3.13 with venv was found: install one, or run make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv

$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "installing the package and its development tools into .venv: under a minute, and once"
	@bash tests/install.sh $(BIN)/python -e '.[dev]'
	@touch $@

clean:
	rm -rf build dist docs/_build docs/api docs/gallery docs/notebooks runs .ruff_cache .pytest_cache .mypy_cache
