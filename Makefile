# Everything below needs Python 3.11 or later and make, and sets up the rest by itself.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST = $(BIN)/python -m pytest
# A file is one worker's: with tests dealt out one by one, both would compile the same kernels at the same time.
TWO_WORKERS = -n 2 --dist loadfile

.PHONY: demo test lint types docs test-notebooks notebooks test-families test-indices test-thorough test-stress \
	test-lowest baselines bench bench-all bench-compare bench-peers bench-compile record dashboard clean

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

# What merges clusters. Families of one geometry take the same way through it, so that one of each
# geometry will do; `make test-families` takes all.
MERGING_TESTS = $(addprefix tests/test_,$(addsuffix .py,audit greedy kd_tree levels nn_chain own_family))
ONE_OF_EACH = TEST_FAMILIES="gaussian poisson spherical_gaussian"
# What is close to the kernels. The rest calls the same ones, through linkage.
KERNEL_TESTS = $(MERGING_TESTS) $(addprefix tests/test_,$(addsuffix .py,double_double entropy \
	families full_covariance geometry heap observations screen statistics traversal))

# Compiled, and a part as plain Python.
test: $(VENV)/installed
	$(ONE_OF_EACH) $(PYTEST) -q $(TWO_WORKERS) $(MERGING_TESTS)
	$(PYTEST) -q $(TWO_WORKERS) $(addprefix --ignore=,$(MERGING_TESTS))
	NUMBA_DISABLE_JIT=1 $(PYTEST) -q $(TWO_WORKERS) -m fast tests

# The notebooks, executed as they are saved.
test-notebooks: $(VENV)/installed
	$(PYTEST) -q $(TWO_WORKERS) --nbmake --nbmake-timeout=600 -p no:doctest -o addopts= notebooks

# Executed, and saved with what they print and draw: no times, and no state of sliders.
notebooks: $(VENV)/installed
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace \
		--ExecutePreprocessor.store_widget_state=False --ExecutePreprocessor.record_timing=False \
		notebooks/*.ipynb

# The guide and the API as HTML in docs/_build/html; a warning is an error.
docs: $(VENV)/installed
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

# All tests with all families.
test-families: $(VENV)/installed
	$(PYTEST) -q $(TWO_WORKERS)

# The kernels with every index checked.
test-indices: $(VENV)/installed
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/cache-boundscheck \
		$(ONE_OF_EACH) $(PYTEST) -q $(TWO_WORKERS) $(KERNEL_TESTS)

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed
	$(BIN)/mypy

# Twenty times as many random data sets; some twenty minutes.
test-thorough: $(VENV)/installed
	$(PYTEST) -q $(TWO_WORKERS) --hypothesis-profile=thorough tests

# What a process may meet: Ctrl-C at any moment, threads, forks, bad caches, little memory, few cores.
# Some minutes; as root, more of it runs.
test-stress: $(VENV)/installed
	$(PYTEST) -q tests/stress/stress_*.py

# The oldest versions that pyproject.toml admits, in an environment of their own. Matplotlib 3.8 calls
# what later versions of pyparsing have renamed, and warns.
test-lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --upgrade pip uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python \
		--resolution lowest-direct --editable ".[dev]" "pyparsing<3.2"
	$(VENV)-lowest/bin/python -m pytest -q $(TWO_WORKERS) tests

# The pictures that tests compare with, drawn anew. Look at them before you commit them.
baselines: $(VENV)/installed
	FASTRBHC_BASELINES=refresh $(PYTEST) -q tests/test_plotting.py -k test_picture

# A quick set of benchmarks in this environment, kept for the dashboard under the present commit. What
# has not been compiled yet is compiled first. Others by name: OPTIONS="--bench linkage.Scaling".
bench: $(VENV)/installed
	$(BIN)/python asv_benchmarks/run.py $(OPTIONS)

# All of them, for hours.
bench-all: $(VENV)/installed
	$(BIN)/python asv_benchmarks/run.py --all $(OPTIONS)

# One page with graphs of all results kept, which needs no network; prints where it is.
dashboard: $(VENV)/installed
	$(BIN)/python asv_benchmarks/dashboard.py

# What became slower since BASE, by ratio; fails if anything did. OPTIONS="--factor 1.3".
bench-compare: $(VENV)/installed
	@test -n "$(BASE)" || { echo "BASE says which commit to compare with: make bench-compare BASE=main"; exit 2; }
	$(BIN)/python asv_benchmarks/compare.py $(BASE) $(OPTIONS)

# The table of speed and memory in the README; a quarter of an hour. Real data, if any, are read from
# the directory FASTRBHC_DATA. Some rows only, and smaller: OPTIONS="--only 1,6 --small".
bench-peers: $(VENV)/installed
	$(BIN)/python asv_benchmarks/bench_peers.py $(OPTIONS)

# What first calls cost with nothing compiled, over the time to compile a yardstick; some minutes. Some
# rows only, or another checkout: OPTIONS="--only 1,5 --package ../other".
bench-compile: $(VENV)/installed
	$(BIN)/python asv_benchmarks/bench_compile.py $(OPTIONS)

# Both tables, kept in asv_benchmarks/recorded under the present commit. Commit the file.
record: $(VENV)/installed
	$(BIN)/python asv_benchmarks/bench_compile.py --record $(OPTIONS)
	$(BIN)/python asv_benchmarks/bench_peers.py --record $(OPTIONS)

clean:
	rm -rf $(VENV) $(VENV)-lowest docs/_build docs/api docs/notebooks .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
