# The two commands: `make demo` and `make test`. Each sets up all it needs and may be run again at once.
# CONTEXT=name uses that context of your kubeconfig instead of the embedded cluster (then no root is needed).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cuvil
# What is installed follows from the pins and from what pyproject.toml says above its tools' settings.
KEY := $(shell (sed '/^\[tool/,$$d' pyproject.toml; cat constraints.txt) | sha256sum | cut -c1-12)-$(shell $(PYTHON) -c 'import sys; print("%d%d" % sys.version_info[:2])' 2>/dev/null)
VENV := $(CACHE)/venv-$(KEY)
PY := $(VENV)/bin/python
export PYTHONPATH := $(CURDIR):$(CURDIR)/operator:$(CURDIR)/tests/support
export PYTHONDONTWRITEBYTECODE := 1
CONTEXT ?=
ONLY ?=
WORKERS ?= 2
stage = @printf '\n\033[1m== %s\033[0m (%s)\n' '$(1)' "$$(date +%T)"

.PHONY: help
help: ## Show the commands
	@awk -F':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(VENV)/ready ## Make the virtual environment (kept outside the tree, one for each set of pins)

$(VENV)/ready:
	$(call stage,virtual environment)
	@command -v $(PYTHON) >/dev/null || { echo 'python3 is missing: install Python 3.11 or newer (Debian: apt-get install python3-venv)'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or newer is needed; name one with PYTHON=/path/to/python3'; exit 1; }
	@mkdir -p $(CACHE)
	$(PYTHON) -m venv --clear $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt '.[operator,serve,dev]'
	$(PY) -m pip uninstall --quiet --yes cuvil
	@rm -rf build cuvil.egg-info
	@touch $@
	@echo 'the environment is $(VENV); `make python` prints how to run it'

.PHONY: python
python: ## Print the command that runs Python in the environment
	@echo env PYTHONPATH=$(PYTHONPATH) $(PY)

.PHONY: demo
demo: setup ## Set everything up and play four rollouts of a real model on a real cluster
	@$(PY) -m demo $(if $(CONTEXT),--context $(CONTEXT))

.PHONY: test
test: setup ## Run everything: lint, types, unit, compiler, operator, then the stories on a real cluster
	@$(MAKE) lint types unit slow programs charts models e2e

.PHONY: check
check: setup ## The inner loop, under two minutes, no cluster: lint, types, unit tests
	@$(MAKE) lint types unit

.PHONY: lint
lint: setup ## Style, and the import rules of the rooms
	$(call stage,lint)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(VENV)/bin/lint-imports

.PHONY: types
types: setup ## Strict types
	$(call stage,types)
	@$(PY) -m mypy

.PHONY: unit
unit: setup ## Tests that need nothing but Python and a compiler
	$(call stage,unit tests)
	@$(PY) -m pytest -q -n $(WORKERS) --dist worksteal -m 'not slow and not models and not programs and not cluster' tests

.PHONY: slow
slow: setup ## Tests of the same kind that take minutes: kills, storms, schedules, every operation
	$(call stage,slow tests)
	@$(PY) -m pytest -q -n $(WORKERS) --dist loadfile -m slow tests

.PHONY: programs
programs: setup ## Build the programs of the embedded cluster (once; kept outside the tree)
	$(call stage,programs of the embedded cluster)
	@$(PY) -m e2e.cluster programs

.PHONY: charts
charts: setup ## Tests that need helm or promtool
	$(call stage,charts and rules)
	@$(PY) -m pytest -q -m programs tests

.PHONY: models
models: setup ## The compiler on real models, beside ONNX Runtime
	$(call stage,real models)
	@$(PY) -m pytest -q -m models tests

.PHONY: e2e
e2e: setup ## The ten stories on a real cluster; ONLY="3 6" plays some
	$(call stage,stories)
	@$(PY) -m e2e $(if $(CONTEXT),--context $(CONTEXT)) $(addprefix --only ,$(ONLY))

.PHONY: bench
bench: setup ## Speed beside ONNX Runtime, as ratios
	@$(PY) -m benchmarks

.PHONY: scoreboard
scoreboard: setup ## ONNX's own cases through compiled code, about 20 minutes; ONLY=PATTERN runs some
	@$(PY) -m scoreboard $(if $(ONLY),--only '$(ONLY)',--write docs/coverage.md)

.PHONY: generate
generate: setup ## Write again what is generated: the chart's copy of the CRD, its reference page
	@$(PY) -m crds.generate

.PHONY: format
format: setup ## Format the code
	@$(PY) -m ruff check --fix-only --quiet . && $(PY) -m ruff format --quiet .

.PHONY: clean
clean: ## Stop the embedded cluster (programs, images and environments stay in the cache)
	@[ ! -x $(PY) ] || $(PY) -m e2e.cluster down
