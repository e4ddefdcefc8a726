# Everything below needs Python 3.11 or later and make, and sets up the rest by itself.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST = $(BIN)/python -m pytest

.PHONY: demo test lint types test-thorough test-lowest bench clean

# Installed again whenever the metadata change; the demonstration needs less than the tests.
$(VENV)/runtime: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/installed: $(VENV)/runtime
	$(BIN)/python -m pip install --quiet --editable ".[dev,bench]"
	touch $@

demo: $(VENV)/runtime
	$(BIN)/fastrbhc demo

# Three times: compiled, compiled with every index checked, and a part as plain Python.
test: $(VENV)/installed
	$(PYTEST) -q -n 2
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/cache-boundscheck $(PYTEST) -q -n 2 tests
	NUMBA_DISABLE_JIT=1 $(PYTEST) -q -n 2 -m fast tests

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed
	$(BIN)/mypy

# Twenty times as many random data sets; some twenty minutes.
test-thorough: $(VENV)/installed
	$(PYTEST) -q -n 2 --hypothesis-profile=thorough tests

# The oldest versions that pyproject.toml admits, in an environment of their own.
test-lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --upgrade pip uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python \
		--resolution lowest-direct --editable ".[dev]"
	$(VENV)-lowest/bin/python -m pytest -q -n 2 tests

# Ratios to peers in one run; see asv_benchmarks for the dashboard.
bench: $(VENV)/installed
	$(BIN)/python asv_benchmarks/peers.py

clean:
	rm -rf $(VENV) $(VENV)-lowest .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
