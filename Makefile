# Shortcuts for developing. `make` alone lists them.
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help run test quick lint format types check pictures audit class

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 10

$(VENV)/ready: requirements.txt requirements-dev.txt
	python3 -m venv $(VENV)
	$(BIN)/pip install -r requirements-dev.txt
	touch $@

run: $(VENV)/ready  ## open the app
	$(BIN)/streamlit run app.py

test: $(VENV)/ready  ## all tests, those in a real browser included
	$(BIN)/python -m pytest

quick: $(VENV)/ready  ## the tests that need neither a browser nor minutes
	$(BIN)/python -m pytest -m "not browser and not slow"

lint: $(VENV)/ready  ## ruff: faults and format, changing nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(VENV)/ready  ## ruff: mend what can be mended
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/ready  ## mypy
	$(BIN)/mypy

check: lint types test  ## everything a change must pass

pictures: $(VENV)/ready  ## take the README's pictures anew
	$(BIN)/python docs/take_pictures.py

class: $(VENV)/ready  ## thirty people at once: how long they wait, and how much memory that takes
	$(BIN)/python -m benchmarks.classroom 30 60 --check

audit: $(VENV)/ready  ## known vulnerabilities of what the app needs; asks a public database
	$(BIN)/pip install --quiet pip-audit
	$(BIN)/pip-audit --strict --requirement requirements.txt
