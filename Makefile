# Everything on a fresh machine: `make demo`, `make test`. Both create .venv and install into it only when pyproject.toml or requirements.lock changed.
# `make test PYTHON=python3.12` does the same in .venv-3.12: an interpreter that is named has an environment of its own.

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
VERSION := import sys; print("%d.%d" % sys.version_info[:2])
ifeq ($(origin PYTHON), undefined)
PYTHON := $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,\
	$(shell $(p) -c '$(NEW_ENOUGH)' 2>/dev/null && echo $(p))))
VENV := .venv
else
VENV := .venv-$(shell '$(PYTHON)' -c '$(VERSION)' 2>/dev/null)
endif
BIN := $(VENV)/bin
GRAPHS := 100000
TRAINING := 3000
INPUTS := 5000
PROGRAMS := 20000
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test docs package fuzz zoo lint format proto clean

help:
	@echo 'make demo     install into .venv, compile and run a two-layer GCN on the karate club, layer 1 fused'
	@echo 'make test     install into .venv, then ruff, mypy and pytest'
	@echo 'make docs     build the documentation site into build/docs; a link that leads nowhere is an error'
	@echo 'make package  build wheel and sdist into dist, install the wheel into an empty environment and try it there'
	@echo 'make fuzz     20,000 random programs (PROGRAMS=n) at every level, as many wide ones, ones with views and ones that choose by data, 100,000 random graphs (GRAPHS=n) on both simulators, 5,000 damaged files of each kind (INPUTS=n)'
	@echo 'make zoo      compile and run the models of tests/zoo at every granularity, and write the table of what became of them'
	@echo 'make format   format the code'
	@echo 'make proto    regenerate the protobuf module'
	@echo 'make clean    remove .venv and everything that was generated'
	@echo 'All of them take PYTHON=python3.12, or the path of any Python from 3.11 on, which gets an environment of its own, .venv-3.12.'

demo: $(VENV)/installed
	$(BIN)/fuseflow run models/gcn.py --fuse layer1

test: $(VENV)/installed-test lint
	$(BIN)/python -m fuseflow.sim.engine.ahead # once, for all tests; each would compile the kernels that it needs
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 8 --dist worksteal

docs: $(VENV)/installed-docs
	rm -rf docs/modules build/docs # what is left of a module that moved would be read again
	$(BIN)/python -m sphinx --builder html --jobs auto --fail-on-warning --keep-going --quiet docs build/docs
	@echo 'the site begins at build/docs/index.html'

package: $(VENV)/installed-test
	$(BIN)/python tools/package_check.py

fuzz: $(VENV)/installed-test
	$(BIN)/python tools/fuzz.py --programs $(PROGRAMS) --jobs 2
	$(BIN)/python tools/fuzz.py --programs $(PROGRAMS) --wide --surfaces 5 --jobs 2
	$(BIN)/python tools/fuzz.py --programs $(PROGRAMS) --views --jobs 2
	$(BIN)/python tools/fuzz.py --programs $(PROGRAMS) --chosen --jobs 2
	$(BIN)/python tools/fuzz.py --training $(TRAINING) --jobs 2
	$(BIN)/python tools/fuzz.py --graphs $(GRAPHS) --jobs 2
	$(BIN)/python -m pytest -m slow -k thousands tests/integration/test_hostile_input.py --draws $(INPUTS)

zoo: $(VENV)/installed-test
	$(BIN)/python tools/zoo.py --jobs 2
	$(BIN)/python tools/zoo.py --gradients --jobs 2

lint: $(VENV)/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports --no-cache --no-logo

format: $(VENV)/installed-test
	$(BIN)/ruff format

proto: $(VENV)/installed-test
	$(BIN)/python tools/proto.py

clean:
	rm -rf .venv .venv-* build dist out docs/modules *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@'$(PYTHON)' -c '$(NEW_ENOUGH)' 2>/dev/null || { echo "fuseflow needs Python 3.11 or newer,\
 and $(if $(PYTHON),'$(PYTHON)' is not one,there is none here); name one: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	'$(PYTHON)' -m venv $(VENV)

$(VENV)/installed: pyproject.toml requirements.lock | $(BIN)/python
	@echo 'installing fuseflow into $(VENV) (PyTorch is large: minutes the first time)'
	@$(PIP) install --constraint requirements.lock --editable .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	@echo 'installing the test tools into $(VENV)'
	@$(PIP) install --constraint requirements.lock --editable '.[test]'
	@$(PIP) install --constraint requirements.lock --editable '.[test-models]' || echo 'no PyTorch Geometric or transformers here: tests of their models are skipped'
	@touch $@

$(VENV)/installed-docs: $(VENV)/installed
	@echo 'installing the tools of the site into $(VENV)'
	@$(PIP) install --constraint requirements.lock --editable '.[docs]'
	@touch $@
