# make demo · make test · make check · make serve MODEL=runs/demo/model
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
MODEL  ?= runs/demo/model
PORT   ?= 8000

.PHONY: help install demo test test-all check serve clean

help:
	@echo "make demo     toy data -> training -> report -> artifact -> HTTP answer, in runs/demo"
	@echo "make test     all tests but the slow ones"
	@echo "make test-all all tests"
	@echo "make check    lint and types"
	@echo "make serve    serve the artifact MODEL ($(MODEL)) on PORT ($(PORT))"
	@echo "make clean    remove $(VENV) and caches; runs and data stay"

# The stamp is newer than what it was made from, so an unchanged environment is not installed again.
install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; expected Python >= 3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $$($(PYTHON) --version) found; expected Python >= 3.11: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	@touch $@

demo: install
	$(BIN)/python examples/demo.py

test: install
	$(BIN)/python -m pytest

test-all: install
	$(BIN)/python -m pytest -m ""

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

serve: install
	$(BIN)/python -m api --model $(MODEL) --port $(PORT)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
