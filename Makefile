# Everything runs in .venv inside the checkout: `make demo` and `make test` set it up by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CASES := 20000
FILES := 100000
REQUESTS := 1000
BENCH :=
BRANCH := main
VERSION :=
MUTANTS :=
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
COVERED := $(BIN)/coverage run -m pytest -n 2 --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-slow test-lowest test-versions accessibility coverage ratios fuzz \
	mutants bench docs lint lint-js types format graph dist check-dist release clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F '|' '{printf "%-20s%s\n", $$1, $$2}'

demo: $(VENV)/.with-all  ## Fit the forest on the bundled data and show what it predicts
	@$(BIN)/python -m cqrf.demo

test: $(VENV)/.with-test  ## Run the tests, but for the slow ones (a quarter of an hour)
	@NUMBA_DISABLE_JIT=1 $(PYTEST) -m "kernel and not slow" tests/_forest
	@$(PYTEST) -m "not kernel and not slow"

test-slow: $(VENV)/.with-test  ## Run the slow tests: simulations, large tables, memory, kernels
	@$(PYTEST) -m "kernel or slow"

# tests/support/versions.py says which tests, and which dependency each of them is for: all that
# meets other packages (input, scikit-learn, plots, commands, server, Dask), not what only computes.
test-lowest:  ## Run the tests that meet dependencies with the lowest versions of these
	@$(PYTHON) tests/support/versions.py lowest

test-versions:  ## The same with the newest versions and every Python found, then each extra alone
	@$(PYTHON) tests/support/versions.py newest
	@$(PYTHON) tests/support/versions.py extras

accessibility: $(VENV)/.with-test node_modules/.installed  ## Check the pages with axe-core in a browser (`make docs` first, for the manual)
	@$(BIN)/python -m pytest -q tests/accessibility

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

fuzz: $(VENV)/.with-test  ## Check 20 000 random forests of each kind, 100 000 damaged files, and requests
	@env -u CI CQRF_FUZZ_CASES=$(CASES) CQRF_FUZZ_FILES=$(FILES) CQRF_FUZZ_REQUESTS=$(REQUESTS) \
		$(BIN)/python -m pytest -n 2 -rP tests/reliability/test_fuzz.py \
		tests/reliability/test_fuzz_outcomes.py tests/serve/test_schema.py

mutants: $(VENV)/.with-mutants  ## Change lines, see if tests notice (an hour; MUTANTS="--only codec --sample 10")
	@$(BIN)/python -m benchmarks.mutants --fail-under 85 $(MUTANTS)

bench: $(VENV)/.with-bench $(VENV)/.comprisk  ## Measure times and memory beside the peers (an hour; BENCH=--quick: minutes)
	@$(BIN)/python -m benchmarks.peers $(BENCH)

docs: $(VENV)/.with-docs  ## Build the manual into docs/_build/html, without a network
	@$(BIN)/python -m sphinx -q -E -W --keep-going -j 2 -d docs/_build/doctrees docs docs/_build/html
	@$(BIN)/python docs/check_links.py docs/_build/html
	@echo "The manual is docs/_build/html/index.html"

lint: $(VENV)/.with-dev lint-js  ## Check style and formatting, of the scripts of the pages as well
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

lint-js: node_modules/.installed  ## Check the scripts of reports and of the server's page
	@node_modules/.bin/eslint --max-warnings 0 .

types: $(VENV)/.with-dev $(VENV)/.with-all  ## Check types
	@$(BIN)/mypy

format: $(VENV)/.with-dev  ## Put the code in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

graph: $(VENV)/.with-dev  ## Write the import graph into CONTRIBUTING.md
	@PYTHONPATH=tests $(BIN)/python tests/support/architecture.py

dist: $(VENV)/.with-release  ## Build the wheel and the source distribution into dist/, and check their form
	@rm -rf dist
	@$(BIN)/python -m build
	@$(BIN)/python -m twine check --strict dist/*
	@$(BIN)/python -m check_wheel_contents dist
	@$(BIN)/hadolint Dockerfile

check-dist: dist  ## Install both into empty environments: demo, manual and tests (half an hour)
	@$(BIN)/python tools/check_dist.py wheel
	@$(BIN)/python tools/check_dist.py sdist

release: $(VENV)/.with-release  ## Set version and date, build, check, commit and tag (VERSION=1.2.0)
	@$(BIN)/python tools/release.py --branch $(BRANCH) $(VERSION)

clean:  ## Remove the virtual environments, caches and builds
	@rm -rf $(VENV) .venv-* node_modules build dist docs/_build docs/api/generated docs/gallery docs/measurements .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra: a target installs only what it needs, on top of what is there.
$(VENV)/.with-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing cqrf[$*] into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[$*]"
	@touch $@

# Tools for the pages: they only check them.
node_modules/.installed: package.json package-lock.json
	@command -v npm >/dev/null || { echo "cqrf's pages are checked with tools from npm: install Node.js 20.19 or newer"; exit 1; }
	@echo "Installing ESLint and axe-core into node_modules ..."
	@npm ci --loglevel=error >/dev/null
	@touch $@

# comprisk asks for an older Numba than ours but runs with it, so it comes without what it asks for.
$(VENV)/.comprisk: | $(VENV)/.with-bench
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps comprisk==0.8.0 \
		&& touch $@ || echo "comprisk cannot be installed: going on without it"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("cqrf needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
