# Everything on a fresh machine: `make demo`, `make test`. Both create .venv and install into it only when pyproject.toml changed.

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,\
	$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin
GRAPHS := 100000
PROGRAMS := 20000
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test docs fuzz lint format proto clean

help:
	@echo 'make demo    install into .venv, compile and run a two-layer GCN on the karate club, layer 1 fused'
	@echo 'make test    install into .venv, then ruff, mypy and pytest'
	@echo 'make docs    build the documentation site into build/docs; a link that leads nowhere is an error'
	@echo 'make fuzz    20,000 random programs (PROGRAMS=n) at every level, 100,000 random graphs (GRAPHS=n) on both simulators'
	@echo 'make format  format the code'
	@echo 'make proto   regenerate the protobuf modules'
	@echo 'make clean   remove .venv and everything that was generated'

demo: .venv/installed
	$(BIN)/fuseflow run models/gcn.py --fuse layer1

test: .venv/installed-test lint
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 8 --dist worksteal

docs: .venv/installed-docs
	rm -rf docs/reference build/docs # what is left of a module that moved would be read again
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs build/docs
	@echo 'the site begins at build/docs/index.html'

fuzz: .venv/installed-test
	$(BIN)/python tools/fuzz.py --programs $(PROGRAMS) --jobs 2
	$(BIN)/python tools/fuzz.py --graphs $(GRAPHS) --jobs 2

lint: .venv/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: .venv/installed-test
	$(BIN)/ruff format

proto: .venv/installed-test
	$(BIN)/python tools/proto.py

clean:
	rm -rf .venv build dist out docs/reference *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'fuseflow needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3.12' >&2; exit 2; }
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | $(BIN)/python
	@echo 'installing fuseflow into .venv (PyTorch is large: minutes the first time)'
	@$(PIP) install --editable .
	@touch $@

.venv/installed-test: .venv/installed
	@echo 'installing the test tools into .venv'
	@$(PIP) install --editable '.[test]'
	@$(PIP) install --editable '.[test-models]' || echo 'no PyTorch Geometric or transformers here: tests of their models are skipped'
	@touch $@

.venv/installed-docs: .venv/installed
	@echo 'installing the tools of the site into .venv'
	@$(PIP) install --editable '.[docs]'
	@touch $@
