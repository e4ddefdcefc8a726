# Everything below needs Python 3.11 or later and make, and sets up the rest by itself.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST = $(BIN)/python -m pytest

.PHONY: demo test lint types test-thorough test-lowest bench bench-peers clean

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

# What is close to the kernels. The rest calls the same ones, through linkage.
KERNEL_TESTS = $(addprefix tests/test_,$(addsuffix .py,double_double entropy families geometry \
	greedy heap kd_tree levels nn_chain observations statistics))

# Three times: compiled; the kernels with every index checked, for one family of each geometry, as
# families of one geometry differ in no index; and a part as plain Python.
test: $(VENV)/installed
	$(PYTEST) -q -n 2
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/cache-boundscheck \
		TEST_FAMILIES="gaussian poisson spherical_gaussian" $(PYTEST) -q -n 2 $(KERNEL_TESTS)
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

# The table of speed and memory in the README; a quarter of an hour. Real data, if any, are read from
# the directory FASTRBHC_DATA. Some rows only, and smaller: OPTIONS="--only 1,6 --small".
bench-peers: $(VENV)/installed
	$(BIN)/python asv_benchmarks/bench_peers.py $(OPTIONS)

clean:
	rm -rf $(VENV) $(VENV)-lowest .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
