# Everything a developer or a user of a clone does, one word each. `make` lists them.

PYTHON ?= python3
# One more than processors: tests that wait for a real server leave theirs to another.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
BIN := .venv/bin
PACKAGES := .venv/.packages-installed
FORESAIL := .venv/.foresail-installed
QUICK := distributions events growth nodes reading replay
CODE := $(wildcard src studies kubernetes slurm tests examples benchmarks docs experiments)

.DEFAULT_GOAL := help
.PHONY: help setup demo picture test test-long test-kubernetes check format bench bench-check docs wheel lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(FORESAIL) ## install the locked packages, foresail, its studies, kubernetes and slurm into .venv; compile

demo: setup ## a log under several policies, plans ahead, real commands; pages in demo-output/
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/demo demo-output

picture: demo ## draw docs/picture.svg from what the demonstration found (needs Chromium)
	$(BIN)/python scripts/picture.py demo-output docs/picture.svg

test: setup ## run all tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-long: setup ## run all tests with their series and matrices in full
	FORESAIL_LONG_TESTS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-kubernetes: setup ## run the tests of Kubernetes; where no API server is built, build one: some ten minutes
	@[ ! -x ../shared/tools/kube-cluster ] || ../shared/tools/kube-cluster install
	$(BIN)/python -m pytest tests/kubernetes

check: setup ## format, lint, types, import contracts, budget of lines: look, change nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/lint-imports --no-logo --config kubernetes/imports.toml
	$(BIN)/lint-imports --no-logo --config slurm/imports.toml
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/architecture/test_budget.py

format: setup ## put into shape what `check` looks at
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/python tests/architecture/floors.py

bench: setup ## measure speed and memory against the slow reference
	$(BIN)/python -m benchmarks

bench-check: setup ## the quick ones of them: fail if a ratio leaves its range
	$(BIN)/python -m benchmarks --check $(QUICK)

docs: setup ## build the site into docs/_build/site
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/site
	@echo "open docs/_build/site/index.html"

wheel: setup ## build the wheels of foresail, foresail-studies, foresail-kubernetes and foresail-slurm into dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	$(BIN)/python -m build --wheel --no-isolation --outdir dist studies
	$(BIN)/python -m build --wheel --no-isolation --outdir dist kubernetes
	$(BIN)/python -m build --wheel --no-isolation --outdir dist slurm

lock: setup ## resolve requirements.lock again; UPGRADE=--upgrade takes newer versions
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra development --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
		--quiet $(UPGRADE) --output-file requirements.lock

clean: ## remove what was built, but not .venv
	rm -rf build dist demo-output docs/_build docs/_generated
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "foresail needs Python 3.11 or newer: make setup PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv

# The stamps are younger than what they were made from, so a second call does nothing.
$(PACKAGES): requirements.lock | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(FORESAIL): pyproject.toml studies/pyproject.toml kubernetes/pyproject.toml slurm/pyproject.toml $(PACKAGES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation --editable . --editable studies --editable kubernetes --editable slurm
	$(BIN)/python -m foresail.explain.compiling
	@touch $@
