# Two commands for a newcomer: `make demo` and `make test`. Each sets itself up in .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
SEEDS ?= 1
KILLS ?= 1000
N ?= 200
SEED ?= 1
PARENT ?= HEAD

.PHONY: help demo test deep shapes lint recipes exports torture mutants fingerprints index bench docs pictures clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

demo: .venv/.core  ## train the default recipe on embedded data and write its report
	$(BIN)/quoin train

# CI=true: hypothesis then tries the same cases every time. New ones come with plain `pytest`.
test: lint  ## lint, type-check and test everything
	CI=true OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

deep: .venv/.test .venv/triton .venv/.browser shapes  ## the tests that take longer: fuzzing, shapes, every recipe killed and resumed
	CI=true OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m deep

shapes: .venv/.test  ## the shapes in the signatures, checked at every call of the contract tests and examples
	CI=true OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m pytest -p shape_checks -q -n 2 --dist worksteal tests/test_contract_*.py src/quoin

lint: .venv/.test
	$(BIN)/ruff check src tests docs
	$(BIN)/pyright

recipes: .venv/.core  ## train every recipe to its target and print the table (SEEDS=10 for the spread, ONLY="mlp lenet" for some); stopped, it goes on
	$(BIN)/python -m quoin.cli.train_all --seeds $(SEEDS) $(if $(TABLE),--table $(TABLE)) $(if $(JOBS),--jobs $(JOBS)) $(ONLY)

exports: .venv/.test  ## export every recipe by every form, compare, and write the table of docs/exports.md
	OMP_NUM_THREADS=1 $(BIN)/python -m quoin.runs.export.table --page docs/exports.md

torture: .venv/.test  ## kill a training run a thousand times and compare every bit (KILLS=100 for fewer)
	$(BIN)/python tests/torture.py $(KILLS)

mutants: .venv/.test  ## put N small faults into the code (SEED draws them) and see whether the tests catch them; resumable
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutants.py --number $(N) --seed $(SEED)

fingerprints: .venv/.test  ## every recipe's short run in this tree and in PARENT: the same to the bit?
	$(BIN)/python tests/fingerprints.py compare $(PARENT)

index: .venv/.test  ## write anew what `quoin map WORD` looks through and what `quoin list` prints
	$(BIN)/python -m quoin.notes.source_index
	$(BIN)/python -m quoin.runs.listing
	$(BIN)/python -m quoin.lab.exhibit_index

bench: .venv/.bench  ## Quoin compared with other libraries, on one page (docs/measured.md); stopped, it goes on where it was
	-@$(MAKE) --no-print-directory .venv/.browser
	$(BIN)/quoin bench --kernels --keep build/bench --page docs/measured.md

docs: .venv/.docs  ## build the site into build/site and check its links
	OMP_NUM_THREADS=1 $(BIN)/python docs/generate.py

pictures: .venv/.core  ## plot the pictures of the README anew (trains two models)
	cd docs && ../$(BIN)/python -m generator.pictures

clean:  ## remove the virtual environment and what was built
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Quoin needs Python 3.11 or newer: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.core: .venv/.made pyproject.toml constraints.txt
	@echo "installing Quoin and torch into .venv (about a minute)"
	$(PIP) --editable .
	@touch $@

.venv/.test: .venv/.core
	$(PIP) --editable '.[test]'
	@touch $@

# Triton's interpreter computes the CUDA kernels on the CPU. In a folder of its own, where only those tests look: torch
# takes other ways once it finds Triton.
.venv/triton: .venv/.test
	$(PIP) --no-deps --target $@ triton
	@touch $@

# The lab's pages are tested, and measured, in a real browser, the system's chromium.
.venv/.browser: .venv/.test
	@command -v chromium chromium-browser google-chrome > /dev/null || { apt-get update -qq && apt-get install -y -qq chromium > /dev/null; } || \
		{ echo "the lab's pages are tested, and measured, in chromium: install it with your system's package manager"; exit 1; }
	@touch $@

# The lab's pages stand on the site, still.
.venv/.docs: .venv/.core
	$(PIP) --editable '.[docs,lab]'
	@touch $@

.venv/.bench: .venv/.core
	$(PIP) --editable '.[bench]'
	@touch $@
