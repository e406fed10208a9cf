# Each target sets up what it needs: a virtual environment in .venv, pinned by constraints.txt.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check types fast soak versions coverage bench pins clean

# The tests start a thousand interpreters and more: each would compile us anew where this is set.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
PATIENT_WORKERS ?= 4  # of those that mostly wait for other processes

# Of the store what waits, freezes, kills, or goes through every door a second time comes later.
PATIENT_TESTS := $(wildcard tests/store/sealed tests/store/test_*interleavings.py tests/store/test_guest*.py \
	tests/store/test_listening.py tests/store/test_lost_hints.py tests/store/test_mutants.py tests/store/test_postgres_plans.py \
	tests/store/test_postgres_races.py tests/store/test_transactions.py tests/store/test_transitions.py \
	tests/store/test_gates.py tests/store/test_silence.py tests/store/test_slow_inspections.py tests/store/test_crowds.py tests/store/test_client.py \
	tests/store/test_postgres_o*.py tests/store/test_avoid.py tests/store/test_beats.py \
	tests/store/test_people.py tests/store/test_breakers.py tests/store/test_stats.py tests/store/test_races.py \
	tests/store/test_policies.py tests/store/test_presence.py tests/store/test_schedules.py tests/store/test_keeping.py \
	tests/store/test_fleet.py tests/store/test_agent.py tests/store/test_supervisor.py tests/store/test_chains.py \
	tests/store/test_failed.py tests/store/test_budgets.py tests/store/test_lost_agents.py tests/store/test_suspensions.py \
	tests/store/test_undecided.py tests/store/test_before_regions.py tests/store/test_region_corners.py \
	tests/store/test_incidents.py tests/store/test_alike.py tests/store/test_owner.py tests/store/test_bad_files.py \
	tests/store/test_blobs.py tests/store/test_crash_images.py tests/store/test_disk.py tests/store/test_pruner.py)
FAST_TESTS := $(wildcard tests/unit tests/store tests/arch) $(addprefix --ignore=,$(PATIENT_TESTS))
# What takes longest comes first, one after the other in one worker, while the others do the rest.
LONGEST_TESTS := $(wildcard tests/house/test_detection.py tests/house/test_agent_storm.py tests/house/test_kill.py)
SLOW_TESTS := $(LONGEST_TESTS) $(wildcard tests/rooms tests/simulation tests/docs) $(PATIENT_TESTS) \
	$(filter-out $(LONGEST_TESTS),$(wildcard tests/house/test_*.py))
SOURCES := $(wildcard src tests benchmarks examples)
TYPED := $(wildcard src tests examples)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/ready ## What breaks, and how it is cured: a killed process, a cloud, an encoder, a bank
	@$(BIN)/python examples/demo.py
	@$(BIN)/python examples/provisioning.py
	@$(BIN)/python examples/video.py
	@$(BIN)/python examples/payment.py

check: $(VENV)/ready ## Format, lint, types, layers, fast tests: under 60 s
	@$(BIN)/ruff format --check --quiet $(SOURCES)
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(MAKE) --no-print-directory -j2 types fast

types:
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/mypy $(TYPED)

fast:
	@$(BIN)/python -m pytest -q -n $(WORKERS) $(FAST_TESTS)

test: check ## Everything: check, then rooms, simulation, house, docs
ifneq ($(SLOW_TESTS),)
	@$(BIN)/python -m pytest -q -n $(PATIENT_WORKERS) --dist worksteal $(SLOW_TESTS)
endif

# New seeds every time; a line that fails names its seed, and so it can be played again.
SEEDS ?= 2000
FIRST ?= $(shell date +%s)

soak: $(VENV)/ready ## All suites at full length, at most two hours; writes docs/reliability.md (SUITES="kills ids" to choose)
	@$(BIN)/python -m tests.soak --seeds $(SEEDS) --first $(FIRST) $(SUITES)

versions: $(VENV)/ready ## The fast tests on every Python and PostgreSQL that is installed
	@$(BIN)/python -m tests.versions $(FAST_TESTS)

# The share of the branches of the engine that must be reached: all code below src/watchbill but cli and testing. It is
# just below what was measured: some branches are races, and not every run loses each of them.
LEAST_COVERAGE := 95
# Left out is what repeats the same branches for long (mutants, images of power cuts, stories, plans, second passes over
# the operations of the store), and code that never yields: while it is traced, it cannot be interrupted.
COVERED_TESTS := $(wildcard tests/unit tests/store tests/rooms) $(wildcard tests/simulation/test_workers.py \
	tests/simulation/test_own_process.py tests/simulation/test_simulation.py) \
	$(addprefix --ignore=,$(wildcard tests/store/sealed tests/store/test_*interleavings.py tests/store/test_mutants.py \
	tests/store/test_crash_images.py tests/store/test_alike.py tests/store/test_postgres_plans.py \
	tests/store/test_transitions.py tests/store/test_crowds.py tests/store/test_slow_inspections.py \
	tests/store/test_guest_doors.py tests/store/test_listening.py))
define COUNT_BRANCHES
import json, sys
totals = json.load(open("build/coverage/report.json"))["totals"]
reached = 100 * totals["covered_branches"] / totals["num_branches"]
print(f"coverage: {reached:.1f} % of the branches of the engine")
sys.exit(reached < $(strip $(LEAST_COVERAGE)))
endef
export COUNT_BRANCHES

coverage: export COVERAGE_FILE := $(CURDIR)/build/coverage/data
coverage: $(VENV)/ready ## Branches of the engine that tests reach: fails below the least; build/coverage has the report
	@mkdir -p build/coverage && rm -f build/coverage/*
	@$(BIN)/python -m coverage run -m pytest -q -n $(WORKERS) --dist worksteal --timeout 600 \
		-k "not never_yields and not planted_mutant" $(COVERED_TESTS)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report --skip-covered --sort miss > build/coverage/report.txt
	@$(BIN)/python -m coverage json -q -o build/coverage/report.json
	@$(BIN)/python -c "$$COUNT_BRANCHES"

bench: $(VENV)/ready-bench ## Our numbers, and a rival beside us (BENCH="noop idle --quick" to choose)
	@$(BIN)/python -m benchmarks $(BENCH)

pins: ## Write constraints.txt anew from the newest versions
	@rm -rf build/pins && $(call find_python,python) && $$python -m venv build/pins
	@build/pins/bin/python -m pip install --quiet --disable-pip-version-check hatchling editables
	@build/pins/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[dev,bench,alerts]'
	@{ head -n 1 constraints.txt; build/pins/bin/python -m pip freeze --exclude watchbill; } > build/pins.txt
	@mv build/pins.txt constraints.txt && rm -rf build/pins

clean: ## Remove the environment, the caches and what was built
	rm -rf $(VENV) build dist .coverage htmlcov .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A name on the PATH may be a launcher without an interpreter behind it, and Debian splits venv off: so each is tried.
define find_python
$(1)=; for candidate in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
	if $$candidate -c 'import sys, venv, ensurepip, sqlite3; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then $(1)=$$candidate; break; fi; done; \
if [ -z "$$$(1)" ]; then \
	echo "watchbill needs Python 3.11 or newer with venv, pip and sqlite3; tried: $(or $(PYTHON),python3.13 python3.12 python3.11 python3)." >&2; \
	echo "Install it (Debian, Ubuntu: sudo apt-get install python3 python3-venv; macOS: brew install python@3.13)," >&2; \
	echo "or name one: make PYTHON=/path/to/python3.13" >&2; exit 1; fi
endef

PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --root-user-action=ignore -c constraints.txt

# The build backend is installed first, from the pins: pip does not apply them to an isolated build.
$(VENV)/ready: pyproject.toml constraints.txt
	@$(call find_python,python); echo "setting up $(VENV) with $$($$python --version)"; \
		$$python -m venv $(VENV)
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

$(VENV)/ready-bench: $(VENV)/ready
	@$(PIP) --no-build-isolation -e '.[bench]'
	@touch $@
