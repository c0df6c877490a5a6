# `make demo` and `make test` set everything up by themselves on a machine with Python 3.11.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
# Not with --quiet: warnings would then be no errors.
DOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

N ?= 5
RESULT ?= flaky.json
PYTEST ?= --quick
# Tests start hundreds of processes: each would compile the source's bytecode anew if none were kept.
unexport PYTHONDONTWRITEBYTECODE
# Tests run side by side; threads that wait for each other would starve. Golden files of trained models
# need the same last bits on every machine: OpenBLAS would choose kernels by the model of the processor.
ONE_THREAD := NUMBA_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=Haswell

.PHONY: setup demo quick test simulate campaign coverage flaky mutants check dist docs bench soak clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m compileall -q src  # as pip does for packages that are not editable
	touch $(STAMP)

demo: setup
	$(BIN)/hedgerow demo

# The tests to run while editing, two to three minutes on two cores; tests/quick.py says which.
quick: setup
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --durations 10 --quick

# Everything, under ten minutes on two cores.
test: setup
	$(ONE_THREAD) $(BIN)/python -m pytest -n 3 --durations 25 --ignore tests/test_documents.py

# New histories of the simulator on two cores; FIRST=seed runs the same ones again
SEEDS ?= 2000
ifndef FIRST
FIRST := $(shell date +%s)000
endif
simulate: setup
	@echo "seeds $(FIRST) and $(SEEDS) from there"
	$(ONE_THREAD) $(BIN)/python -m hedgerow.testing.simulation --seeds $(SEEDS) --first $(FIRST) --jobs 2

# Goes on with the recorded campaign as far as HISTORIES, and writes its figures into the documents;
# Ctrl-C at any time, the same command goes on
HISTORIES ?= 100000
JOBS ?= 2
campaign: setup
	$(ONE_THREAD) $(BIN)/python -m hedgerow.testing.simulation --seeds $(HISTORIES) --jobs $(JOBS) --nice 10 --out benchmarks/results/simulation.json
	$(BIN)/python -m tests.simulation.figures

# Of the quick tests; PYTEST= (empty) for all of them
coverage: setup
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 $(PYTEST) --cov --cov-report html --cov-report term
	@echo 'Open htmlcov/index.html for the lines.'

# N=20 runs, ONLY=noise for tests that draw noise or start processes, RESULT=file for what came out,
# MINUTES=60 to begin no run that would end later; the same command goes on after an interruption
flaky: setup
	$(ONE_THREAD) $(BIN)/python -m tests.flaky --runs $(N) --only $(or $(ONLY),all) --result $(RESULT) \
		$(and $(MINUTES),--minutes $(MINUTES)) -- -n 3

# Small defects planted one at a time in all that privacy rests on; lists those that no test notices.
# MUTANTS=number of them; the same command goes on after an interruption
MUTANTS ?= 330
mutants: setup
	$(ONE_THREAD) $(BIN)/python -m tests.mutations --total $(MUTANTS)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/pre-commit validate-config
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n 2 tests/test_documents.py
	$(DOCS)

# The files for PyPI; the README and a newcomer's first hour where only the wheel is installed.
dist: setup
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/python -m tests.installed dist
	$(BIN)/python -m tests.newcomer dist

docs: setup
	$(DOCS)
	@echo 'Open site/index.html in a browser; it needs no network.'

bench: setup
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[benchmarks]'
	$(BIN)/python benchmarks/accuracy.py --quick

soak: setup
	$(BIN)/python benchmarks/soak.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist demo-output site htmlcov .coverage flaky.json
