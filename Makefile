# make paper   reproduce the paper: report.html, figures, data and claims in results/paper
# make docs    all of it, what Auto and pooling are worth and how far a diagnosis can be trusted (most of an hour):
#              docs/reproduction.md, auto.md, cohort.md, the tables of diagnose.md, figures
# make test    every test
# make stress  the tests that depend on time, 30 times with two busy processes beside them (hours);
#              make stress RUNS=5 TESTS=tests/service/test_browser.py: fewer
# make check   style, types, import order
# make bench   the measurements behind every speed claim (a quarter of an hour or so): docs/performance.md
# make torture kill the service, and try everything else that could break its word (hours): docs/reliability.md
# Each sets up what it needs in $(VENV); nothing but Python ≥ 3.11 has to be there before.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

RUNS ?= 30
TESTS ?= tests

.PHONY: paper docs test stress check bench torture clean
paper: $(VENV)/core
	$(BIN)/larl paper

docs: $(VENV)/core
	$(BIN)/larl paper --all
	cp results/paper/reproduction.md docs/reproduction.md
	cp results/paper/figures/regret.png docs/images/regret.png
	$(BIN)/larl report auto
	cp results/auto/auto.md docs/auto.md
	cp results/auto/images/*.png docs/images/
	$(BIN)/python benchmarks/diagnose.py
	$(BIN)/python benchmarks/cohort.py

test: $(VENV)/test
	$(BIN)/pytest --numprocesses 2

stress: $(VENV)/test
	$(BIN)/python -m tests.stress --runs $(RUNS) --load 2 -- $(TESTS)

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/typing/use.py
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/bench
	@$(PIP) contextualbandits || echo "contextualbandits, which is built from source, did not install: its rows will say so"
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/scale.py --docs docs
	$(BIN)/python benchmarks/load.py

torture: $(VENV)/test
	$(BIN)/python -m tests.service.reliability

clean:
	rm -rf $(VENV) results

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "larl needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; name another: make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing larl into $(VENV) (a minute or two the first time)"
	$(PIP) --editable .
	@touch $@

$(VENV)/test $(VENV)/dev $(VENV)/bench: $(VENV)/%: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing larl[$*] into $(VENV) (a minute or two the first time)"
	$(PIP) --editable '.[$*]'
	@touch $@
