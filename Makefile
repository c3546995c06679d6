# Every routine task of shuffledp. Needs git, make and Python 3.11 or newer; `make` lists the tasks.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The first Python on this machine that is new enough; `make PYTHON=... test` chooses another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done)
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what is imported, when it is: a third of all modules.
PIP := $(BIN)/python -m pip install -qq --no-compile
DEMO := demo-results
SPHINX := $(BIN)/sphinx-build -n -W --keep-going -q -d docs/_build/doctrees

# Compiled loops are kept here between runs, so that sources may be read-only.
export NUMBA_CACHE_DIR := $(CURDIR)/.cache/numba
# Bytecode is kept too, or each worker and each program that a test starts compiles everything anew.
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Command-line options of the test run, for example: make pytest ARGS='-k shuffle -x'
ARGS ?=
comma := ,

.PHONY: help demo survey test test-all setup check format lint types contracts changelog docs docs-check docs-outputs docs-figures \
	programs browser servers java node client spark pytest quick lowest perturbed coverage golden bench papers clean

help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## set up, then run the main job on two real surveys
	@rm -rf $(DEMO)
	@$(BIN)/shuffledp demo --out $(DEMO)

# Set-up takes one core, and so does each check: these run side by side, and tests after them.
SET_UP_AND_CHECK = $(MAKE) --jobs 2 setup programs && echo "Checking the sources, and adding Apache Spark where it is missing ..." \
	&& $(MAKE) --jobs 3 --output-sync=target spark check

SURVEY := survey-trial
# A task of one question that people answer within five minutes, in trials: $(1) its name, $(2) the question, $(3) its kind.
trial = @$(BIN)/shuffledp task create --question $(2) $(3) --epsilon 1 --epsilon0 1 --delta 1e-6 --min-batch 20 \
	--epoch 5m --grace 10s --info "Working while ill" --out $(SURVEY)/$(1) > /dev/null
survey: $(VENV)/.dev ## set up, then serve a survey of three questions, to try it in a browser
	@rm -rf $(SURVEY)
	$(call trial,1-ill,"Have you worked while ill this year?",--domain "yes$(comma)no")
	$(call trial,2-way,"How do you come to work?",--domain "on foot$(comma)by bike$(comma)by bus or train$(comma)by car")
	$(call trial,3-hours,"How many hours did you work last week?",--mean --range "0$(comma)80")
	@$(BIN)/shuffledp serve pilot $(SURVEY)/*

test: ## set up, then run everything that continuous integration runs
	@$(SET_UP_AND_CHECK)
	@$(MAKE) quick
	@echo "All checks passed."

test-all: ## the same with the long tests and the thresholds of coverage, before a release
	@$(SET_UP_AND_CHECK)
	@for step in docs pytest coverage; do $(MAKE) $$step; done
	@echo "All checks passed, the long ones too."

# ---------------------------------------------------------------- set-up
# Two stamps, so that the demo need not wait for the developers' tools. The packages are the
# pinned ones, by the hashes of their files; hatchling is one, so the build is not isolated.
$(VENV)/.runtime: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found: install one, or run make PYTHON=/path/to/python."; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version), once: about a minute ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes --requirement constraints.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime constraints-dev.txt
	@echo "Adding the developers' tools, once: about a minute ..."
	@$(PIP) --require-hashes --no-deps --requirement constraints-dev.txt
	@$(BIN)/python -m pip check
	@touch $@

setup: $(VENV)/.dev ## set up the virtual environment with all tools

# ---------------------------------------------------------------- checks that run no test
check: lint types contracts changelog docs-check ## everything that CI runs but the tests

format: $(VENV)/.dev ## rewrite the sources in the one format
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

lint: $(VENV)/.dev ## format, lint and spelling
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/codespell *.md changelog.d docs src

# It reads what is installed of Apache Spark: all of it or nothing.
types: $(VENV)/.dev $(filter spark,$(MAKECMDGOALS)) ## mypy --strict on the package
	@$(BIN)/mypy

contracts: $(VENV)/.dev ## who may import whom
	@$(BIN)/lint-imports --no-logo --cache-dir .cache/import_linter

changelog: $(VENV)/.dev ## the fragments in changelog.d are well formed
	@draft=$$($(BIN)/towncrier build --draft --version next 2>&1) || { echo "$$draft"; exit 1; }

# Two thirds of the time would go into writing HTML, which finds nothing but code that has no lexer.
# In one process, which takes half as much of a processor as several: other checks have the rest.
docs-check: $(VENV)/.dev ## read the whole documentation, every warning an error, and write nothing
	@$(SPHINX) -b dummy docs docs/_build/html

docs: $(VENV)/.dev ## build the documentation into docs/_build/html, every warning an error
	@$(SPHINX) -j auto docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

# ---------------------------------------------------------------- tests
# Installs Debian's packages $(1), where it may, unless $(2) finds the programs.
install = @if { $(2); } > /dev/null 2>&1; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then \
		echo "Installing Debian's $(1) ..."; \
		export DEBIAN_FRONTEND=noninteractive; \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $(1); } \
			< /dev/null > /dev/null 2>&1 || echo "apt-get could not install them."; \
	else \
		echo "Not found: $(1). Install it to run its tests, too."; \
	fi

browser: ## install Chromium for the browser tests, where that is ours to do
	$(call install,chromium chromium-driver,command -v chromium && command -v chromedriver)

servers: ## install PostgreSQL and nginx, which tests start themselves, where that is ours to do
	$(call install,postgresql nginx-light,{ ls /usr/lib/postgresql/*/bin/initdb || command -v initdb; } && command -v nginx)

java: ## install Java for Apache Spark, where that is ours to do
	$(call install,openjdk-17-jre-headless,java -version 2>&1 | grep -Eq '"(1[7-9]|[2-9][0-9])')

# What bundles the browser's client, by the hashes of its lock file. Left to npm and Node 18 or newer.
CLIENT := src/shuffledp/deploy/web/client
CLIENT_OUT ?= $(CLIENT)
NODE := .cache/node
node: ## install Node and what bundles the browser's client, where that is ours to do
	$(call install,nodejs npm,command -v node && command -v npm)
	@cmp -s $(CLIENT)/package-lock.json $(NODE)/package-lock.json || { command -v npm > /dev/null || exit 0; \
		mkdir -p $(NODE) && cp $(CLIENT)/package.json $(CLIENT)/package-lock.json $(CLIENT)/.npmrc $(NODE) \
		&& npm ci --silent --prefix $(NODE) \
		|| { rm -f $(NODE)/package-lock.json; echo "npm could not install it: its tests are skipped."; }; }

client: ## build the browser's client from its sources
	@NODE_PATH=$(NODE)/node_modules $(NODE)/node_modules/.bin/esbuild shuffledp=$(CLIENT)/src/index.js \
		shuffledp-hybrid=$(CLIENT)/src/hybrid.js --external:./shuffledp-hybrid.js --bundle --minify --format=esm \
		--target=es2022 --charset=utf8 --log-level=warning --outdir=$(CLIENT_OUT)

# One after the other: only one program at a time may install packages.
programs:
	@$(MAKE) browser
	@$(MAKE) servers
	@$(MAKE) java
	@$(MAKE) node

# Apache Spark comes as 434 MB of source archive, which is no reason to have no other test.
spark: $(VENV)/.dev ## add Apache Spark, for its tests
	@test $(VENV)/.spark -nt constraints-spark.txt || { \
		echo "Adding Apache Spark, once ..."; \
		$(PIP) --require-hashes --no-deps --requirement constraints-spark.txt \
			&& touch $(VENV)/.spark || echo "pip could not install it: its tests are skipped."; }

# Worker processes: one a core, at most eight, since each compiles loops on a first run.
pytest: $(VENV)/.dev ## all tests, with coverage measured
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-long} $(BIN)/python -m pytest -q -n auto --maxprocesses=8 --dist=worksteal --cov --cov-report= $(ARGS)

quick: $(VENV)/.dev ## all tests but the long ones, which are marked slow
	@$(BIN)/python -m pytest -q -n auto --maxprocesses=8 --dist=worksteal -m "not slow" $(ARGS)

# The lower bounds of the run-time dependencies, read from pyproject.toml.
lowest: node ## the quick tests with the lowest versions that pyproject.toml allows
	@mkdir -p .cache
	@awk '/^dependencies/,/^]/' pyproject.toml \
		| sed -n 's/^ *"\([a-z0-9]*\)>=\([0-9.]*\).*/\1==\2/p' > .cache/lowest.txt
	@$(PYTHON) -m venv .cache/venv-lowest
	@.cache/venv-lowest/bin/python -m pip install -qq --constraint .cache/lowest.txt \
		--editable '.[attacks,certify,datasets,postgresql,s3,service,dev]'
	@.cache/venv-lowest/bin/python -m pytest -q -n auto --maxprocesses=8 \
		-m "not slow and not browser" $(ARGS)

perturbed: $(VENV)/.dev ## tests of core, guarantees and leakage with exp, log, pow and their kin off by an ulp; needs cc
	@$(BIN)/python tests/perturbed.py -m "not slow" src tests/core tests/amplification tests/composition tests/accounting tests/leakage $(ARGS)

# Numbers that claim privacy come from these: every line and branch there is tested. What keeps
# compiled code is tested in processes of its own, which are not measured.
PROVED := */shuffledp/core/*,*/shuffledp/amplification/*,*/shuffledp/composition/*,*/shuffledp/accounting/*,*/shuffledp/*/privacy/*
coverage: ## the thresholds, from the last `make pytest`
	@$(BIN)/coverage report --include='$(PROVED)' --omit='*/core/loop_cache.py' --fail-under=100
	@$(BIN)/coverage report --omit='$(PROVED)' --fail-under=90

docs-outputs: $(VENV)/.dev ## rewrite the outputs shown in README and docs with what the commands print now
	@PYTHONPATH=tests $(BIN)/python tests/docs/test_pages.py $(ARGS)
	@$(BIN)/python docs/run_notebooks.py

docs-figures: $(VENV)/.dev ## draw the figures of docs/results anew
	@$(BIN)/python docs/figures.py $(ARGS)

golden: $(VENV)/.dev ## write what some 350 calls return now into tests/golden/net.json, and docs/schemas; ARGS=--diff only shows it
	@cd tests && ../$(BIN)/python -m golden.make_net $(ARGS)

bench: $(VENV)/.dev ## measure speed and memory; see benchmarks/
	@$(BIN)/python -m pytest -q -p no:xdist --timeout=0 --benchmark-only \
		--override-ini python_files='bench_*.py' benchmarks $(ARGS)

# Figures that need data sets are left out unless they are there: make papers DATA=folder ARGS=--fetch
papers: $(VENV)/.dev ## compute the figures of the papers into build/papers; DATA names a folder with data
	@for paper in jurado_2023 liew_2022 meehan_2022; do \
		$(BIN)/python papers/$$paper.py --out build/papers/$$paper $(if $(DATA),--data $(DATA)) $(ARGS); \
	done

clean: ## remove everything that make has made
	@rm -rf $(VENV) .cache build dist docs/_build docs/api/generated $(DEMO) $(SURVEY)
