.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check containers fuzz lint types docs bench clean

PYTHON ?= python3
VENV := .venv
OMICS := .venv-omics
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip
STAMP := $(VENV)/.stamp-

# Extra arguments of demo, test, check, fuzz and bench: make test ARGS="-k gate"
ARGS ?=
# How long make fuzz looks for new cases.
MINUTES ?= 10

# The version check reaches for the network on every run.
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Data beside the checkout spares the downloads.
ifndef LOKL_DATA
ifneq ($(wildcard ../shared/data/.),)
export LOKL_DATA := $(abspath ../shared/data)
endif
endif

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

demo: $(STAMP)demo  ## run the main job
	$(BIN)/lokl demo $(ARGS)

# One BLAS thread for each worker, else they fight for cores.
# numba keeps its threads, so that parallel loops are tested as users run them.
test: $(STAMP)test  ## run the tests
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	$(BIN)/python -m pytest -n auto --maxprocesses 2 $(ARGS)

check: $(STAMP)test  ## run the quick tests, in about three minutes
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	$(BIN)/python -m pytest -n auto --maxprocesses 2 -m 'not slow' $(ARGS)

# anndata does not admit the versions of pandas of the other tests.
containers: $(OMICS)/ready  ## run the tests of AnnData and MuData files, in an environment of their own
	$(OMICS)/bin/python -m pytest tests/tables/test_containers.py

fuzz: $(STAMP)test  ## look for new failing cases for MINUTES (10)
	$(BIN)/python tests/fuzz.py --minutes $(MINUTES) $(ARGS)

lint: $(STAMP)lint  ## check style, spelling, workflows and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/lint-imports

types: $(STAMP)lint  ## check types
	$(BIN)/mypy

docs: $(STAMP)docs  ## build the documentation in docs/_build/html
	$(BIN)/sphinx-build -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html

bench: $(STAMP)bench  ## run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

clean:  ## remove the environment and everything built
	rm -rf $(VENV) $(OMICS) build dist docs/_build docs/generated docs/gallery
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up. A stamp is the copy of pyproject.toml that was installed: a new date on the same
# text installs nothing. The build backend lives in the environment, so that a changed text
# with no new dependency installs without a network.

$(STAMP)venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'lokl needs Python 3.11 or newer. Name one: make PYTHON=python3.12 ...' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo '$(PYTHON) cannot create virtual environments: its ensurepip module is missing.' >&2; \
	  echo 'On Debian and Ubuntu: apt install python3-venv.' >&2; exit 1; }
	@echo 'creating $(VENV) ...'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --upgrade 'pip>=25.1' 'hatchling>=1.27' editables
	@touch $@

$(STAMP)lokl: pyproject.toml | $(STAMP)venv
	@cmp -s $< $@ || { echo 'installing lokl into $(VENV) ...'; \
	  $(PIP) install --quiet --no-build-isolation --editable .; }
	@cp $< $@

# Tables, models on disk, reports and figures need extras of the package.
$(STAMP)demo: pyproject.toml | $(STAMP)lokl
	@cmp -s $< $@ || { echo 'installing what the demo needs into $(VENV) ...'; \
	  $(PIP) install --quiet --no-build-isolation --editable '.[data,files,report,plot]'; }
	@cp $< $@

$(STAMP)%: pyproject.toml | $(STAMP)lokl
	@cmp -s $< $@ || { echo 'installing the tools of "$*" into $(VENV) ...'; \
	  $(PIP) install --quiet --group $*; }
	@cp $< $@

$(OMICS)/ready: pyproject.toml | $(STAMP)venv
	@cmp -s $< $@ || { echo 'installing the tools of "containers" into $(OMICS) ...'; \
	  $(PYTHON) -m venv --clear $(OMICS) && \
	  $(OMICS)/bin/python -m pip install --quiet 'pip>=25.1' && \
	  $(OMICS)/bin/python -m pip install --quiet --editable '.[data,files,report,omics]' --group containers; }
	@cp $< $@
