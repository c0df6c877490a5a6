# `make demo` and `make test` set everything up by themselves on a machine with Python 3.11.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
# Not with --quiet: warnings would then be no errors.
DOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

N ?= 5
RESULT ?= flaky.json

.PHONY: setup demo test flaky check docs bench soak clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: setup
	$(BIN)/hedgerow demo

test: setup
	NUMBA_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --durations 25 --ignore tests/test_documents.py

# N=20 runs, ONLY=noise for tests that draw noise or start processes, RESULT=file for what came out
flaky: setup
	NUMBA_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.flaky --runs $(N) --only $(or $(ONLY),all) --result $(RESULT) -- -n 3

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n 2 tests/test_documents.py
	$(DOCS)

docs: setup
	$(DOCS)
	@echo 'Open site/index.html in a browser; it needs no network.'

bench: setup
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[benchmarks]'
	$(BIN)/python benchmarks/accuracy.py --quick

soak: setup
	$(BIN)/python benchmarks/soak.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist demo-output site flaky.json
