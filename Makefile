# Everything runs in .venv inside the checkout: `make demo` and `make test` set it up by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CASES := 20000
FILES := 100000
BENCH :=
MUTANTS :=
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
COVERED := $(BIN)/coverage run -m pytest -n 2 --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-slow coverage ratios fuzz mutants bench docs lint types format graph clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F '|' '{printf "%-18s%s\n", $$1, $$2}'

demo: $(VENV)/.with-all  ## Fit the forest on the bundled data and show what it predicts
	@$(BIN)/python -m cqrf.demo

test: $(VENV)/.with-test  ## Run the tests, but for the slow ones (five to ten minutes)
	@NUMBA_DISABLE_JIT=1 $(PYTEST) -m "kernel and not slow" tests/_forest
	@$(PYTEST) -m "not kernel and not slow"

test-slow: $(VENV)/.with-test  ## Run the slow tests: simulations, large tables, memory, kernels
	@$(PYTEST) -m "kernel or slow"

coverage: $(VENV)/.with-test  ## Run the tests as `make test` does, and say which lines and branches they run
	@rm -f .coverage .coverage.*
	@$(MAKE) --no-print-directory test PYTEST="$(COVERED)"
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report --sort=cover > .coverage_report; \
		echo "The least covered modules:"; head -22 .coverage_report; tail -1 .coverage_report

ratios: $(VENV)/.with-test  ## Check that fits and predictions are no slower, against scikit-learn's
	@cache=$$(mktemp -d) && NUMBA_CACHE_DIR=$$cache $(BIN)/python -m pytest -p no:xdist -s \
		--benchmark-columns=median,min,max,rounds benchmarks/test_ratios.py; \
		status=$$?; rm -rf $$cache; exit $$status

fuzz: $(VENV)/.with-test  ## Check 20 000 random forests and 100 000 damaged model files (ten minutes)
	@env -u CI CQRF_FUZZ_CASES=$(CASES) CQRF_FUZZ_FILES=$(FILES) \
		$(BIN)/python -m pytest -n 2 -rP tests/reliability/test_fuzz.py

mutants: $(VENV)/.with-mutants  ## Change lines, see if tests notice (an hour; MUTANTS="--only codec --sample 10")
	@$(BIN)/python -m benchmarks.mutants --fail-under 85 $(MUTANTS)

bench: $(VENV)/.with-bench $(VENV)/.comprisk  ## Measure times and memory beside the peers (an hour; BENCH=--quick: minutes)
	@$(BIN)/python -m benchmarks.peers $(BENCH)

docs: $(VENV)/.with-docs  ## Build the manual into docs/_build/html, without a network
	@$(BIN)/python -m sphinx -q -E -W --keep-going -j 2 -d docs/_build/doctrees docs docs/_build/html
	@$(BIN)/python docs/check_links.py docs/_build/html
	@echo "The manual is docs/_build/html/index.html"

lint: $(VENV)/.with-dev  ## Check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.with-dev $(VENV)/.with-all  ## Check types
	@$(BIN)/mypy

format: $(VENV)/.with-dev  ## Put the code in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

graph: $(VENV)/.with-dev  ## Write the import graph into CONTRIBUTING.md
	@PYTHONPATH=tests $(BIN)/python tests/support/architecture.py

clean:  ## Remove the virtual environment, caches and builds
	@rm -rf $(VENV) build dist docs/_build docs/api/generated docs/gallery docs/measurements .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra: a target installs only what it needs, on top of what is there.
$(VENV)/.with-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing cqrf[$*] into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[$*]"
	@touch $@

# comprisk asks for an older Numba than ours but runs with it, so it comes without what it asks for.
$(VENV)/.comprisk: | $(VENV)/.with-bench
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps comprisk==0.8.0 \
		&& touch $@ || echo "comprisk cannot be installed: going on without it"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("cqrf needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
