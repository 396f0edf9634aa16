# On a fresh machine with Python 3.11 or later, pip, venv and make:
#   make demo     index Django's own source tree with background jobs
#   make serve    a site with a worker and a login, to look at the admin
#   make test     the whole test suite, on SQLite and on PostgreSQL
#
# PYTHON  the interpreter the environment is made from      make test PYTHON=python3.13
# VENV    where the environment is                          make test VENV=.venv-3.13
# DJANGO  a requirement that narrows Django's version       make test VENV=.venv-5.2 DJANGO='Django~=5.2.0'
# ARGS    more arguments for pytest, index_tree, serve  make test-sqlite ARGS='-k claim'

PYTHON ?= python3
VENV ?= .venv
EXTRA ?= dev
DJANGO ?=
ARGS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help bench bench-check chaos demo guards serve soak storm test test-sqlite test-postgresql install lint format types migrations messages docs check clean

help:  ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: install  ## Index the installed Django's source with background jobs, and report
	@$(BIN)/python manage.py migrate --verbosity 0
	@$(BIN)/python manage.py index_tree $(ARGS)

serve: install  ## Bring up a site with a worker, a login and something to look at; says where
	@DEMO=1 $(BIN)/python manage.py serve $(ARGS)

test: install  ## Run the test suite on SQLite, then on PostgreSQL (both at once with --jobs=2 --output-sync=target)
	@$(MAKE) --no-print-directory --keep-going test-sqlite test-postgresql

test-sqlite: install  ## Run the test suite on SQLite
	@$(PYTEST) --database sqlite $(ARGS)

test-postgresql: install  ## Run the test suite on PostgreSQL (DATABASE_URL and PG_BINDIR choose which)
	@$(PYTEST) --database postgresql $(ARGS)

install: $(STAMP)  ## Make the environment, if anything about it changed
	@:

$(STAMP): pyproject.toml
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@echo 'Installing into $(VENV) ...'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRA)]' $(if $(DJANGO),'$(DJANGO)')
	@touch $@

lint: install  ## Check style with ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: install  ## Mend what ruff can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: install  ## Check types with mypy, and the public names with pyright too
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python

migrations: install  ## Check that the migrations are those of the models
	@$(BIN)/python manage.py makemigrations --check --dry-run

messages: install  ## Bring the catalogues up to date and compile them (needs gettext)
	@cd django_jobs && $(abspath $(BIN))/python -m django makemessages -l de -l es --add-location file --no-wrap --no-obsolete
	@cd django_jobs && $(abspath $(BIN))/python -m django compilemessages

docs: install  ## Build the documentation into docs/_build/html; a warning is an error
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo 'Open docs/_build/html/index.html'

check: lint types migrations test  ## All of the above

chaos: install  ## Kill, stop and cut off real workers, and reckon (ARGS='--seconds 300 --seed 1 --database sqlite')
	@$(BIN)/python -m tests.chaos $(ARGS)

storm: install  ## Call the store's operations at random from many processes, and tally (ARGS as for chaos)
	@$(BIN)/python -m tests.chaos.storm $(ARGS)

guards: install  ## Take each guard out, and see that its tests fail (ARGS='--database sqlite finish' for some)
	@$(BIN)/python -m tests.guards $(ARGS)

bench: install  ## Run all benchmarks, and write docs/benchmarks.md (an hour or more, on a quiet machine)
	@$(BIN)/python -m benchmarks all $(ARGS)

bench-check: install  ## Compare the ratios of a short run with those recorded (some minutes)
	@$(BIN)/python -m benchmarks check $(ARGS)

soak: install  ## Run mixed load for 20 minutes on each database: is anything lost, does anything grow?
	@$(BIN)/python -m benchmarks soak $(ARGS)

clean:  ## Remove the environment, the demo's database and caches
	rm -rf $(VENV) var build dist docs/_build docs/*/_generated .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find django_jobs testproject tests -name __pycache__ -type d -prune -exec rm -rf {} +
