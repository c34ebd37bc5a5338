# make paper   reproduce the paper: results/paper/report.html, figures, data and claims
# make docs    regenerate docs/reproduction.md, auto.md, cohort.md, pooling.md, prior.md, comparison.md, real-data.md, the tables of diagnose.md and their figures (hours)
# make notebooks  run docs/notebooks and write their outputs
# make test    run the tests, with a temporary PostgreSQL if its programs are installed
# make test-all  the same, then the long versions of tests of crashes, failing disks, packaging and the service
# make test-fast  the tests to run after each change, a minute if kernels are compiled: the laws of every policy and world, agents and
#              cohorts, comparisons and their results, and the service within one process; no other processes, documents, reports or
#              references of single policies
# make stress  run the tests that depend on time 30 times next to two busy processes (hours);
#              make stress RUNS=5 TESTS=tests/service/test_browser.py runs fewer
# make site    build the documentation site into site/: open site/index.html, no server and no network needed
# make check   check style, types, import order, files that GitHub and Docker read, and the documentation site
# make package build a wheel and a source distribution, and test the installed wheel
# make bench   measure every number in docs/performance.md, the tables of scale.md and the load in reliability.md (15 minutes)
# make torture kill and freeze the service, cut its power, damage its files, and write docs/reliability.md (an hour)
# Each target installs what it needs into $(VENV). Only Python 3.11 or newer has to be installed.

# Tests start hundreds of processes: each would compile all modules to bytecode again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Bytecode is compiled at the first import: for all files of all packages it would take as long as everything else.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt

SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# One more than the processors of a small machine: many tests wait for another process.
WORKERS ?= 3
FAST := $(addprefix tests/policies/test_,contract.py live_functions.py finite.py bounds.py missing_rewards.py) \
	$(addprefix tests/live/test_,agent.py agent_files.py cohort.py cohort_files.py) tests/worlds \
	$(addprefix tests/simulation/test_,compare.py result.py study.py tables.py) \
	$(addprefix tests/service/test_,auth.py ledger.py messages.py model.py replay.py requests.py session.py) tests/test_errors.py

RUNS ?= 30
TESTS ?= tests

.PHONY: paper docs notebooks site test test-all test-fast stress check check-types check-style check-files check-site package bench torture clean
paper: $(VENV)/core
	$(BIN)/larl paper

docs: $(VENV)/core $(VENV)/data
	$(BIN)/larl paper --all
	cp results/paper/reproduction.md docs/reproduction.md
	cp results/paper/figures/regret.png docs/images/regret.png
	$(BIN)/larl report auto
	cp results/auto/auto.md docs/auto.md
	cp results/auto/images/*.png docs/images/
	$(BIN)/python benchmarks/diagnose.py
	$(BIN)/python benchmarks/cohort.py
	$(BIN)/python benchmarks/allocation.py
	$(BIN)/python benchmarks/lookback.py
	$(BIN)/larl report cohorts
	cp results/cohorts/pooling.md docs/pooling.md
	cp results/cohorts/images/*.png docs/images/
	$(BIN)/larl report priors
	cp results/priors/prior.md docs/prior.md
	$(BIN)/larl report comparison
	cp results/comparison/comparison.md docs/comparison.md
	cp results/comparison/images/*.png docs/images/
	$(BIN)/larl report data
	cp results/data/real-data.md docs/real-data.md
	cp results/data/images/*.png docs/images/

notebooks: $(VENV)/test
	$(BIN)/python -m tests.notebooks

site: $(VENV)/site
	$(SITE)

test: $(VENV)/test
	LARL_INSTALL=0 .ci/postgres $(BIN)/pytest --numprocesses $(WORKERS) --max-worker-restart 1 -m 'not long'

test-all: test
	LARL_INSTALL=0 .ci/postgres $(BIN)/pytest --numprocesses $(WORKERS) --max-worker-restart 1 -m long

test-fast: $(VENV)/test
	$(BIN)/pytest --numprocesses $(WORKERS) -m 'not timing' $(FAST)

stress: $(VENV)/test
	$(BIN)/python -m tests.stress --runs $(RUNS) --load 2 -- $(TESTS)

# Types take the longest, so they are checked beside everything else; the output of each part is shown when it ends.
check: $(VENV)/dev $(VENV)/site
	@$(MAKE) --no-print-directory --jobs 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) \
		check-types check-style check-files check-site

check-types:
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/typing/use.py
	$(BIN)/pyright --pythonpath $(BIN)/python

check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

check-files:
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/checks.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/feature.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml
	$(BIN)/hadolint Dockerfile

check-site:
	$(SITE)

package: $(VENV)/test
	$(BIN)/python -m build --no-isolation
	$(BIN)/pytest tests/packaging

bench: $(VENV)/bench
	@$(PIP) contextualbandits || echo "contextualbandits could not be built from source: its rows will be marked as not measured"
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/scale.py --docs docs
	$(BIN)/python benchmarks/load.py

torture: $(VENV)/test
	$(BIN)/python -m tests.service.reliability

clean:
	rm -rf $(VENV) results site

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "larl needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; name another: make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing larl into $(VENV) (a minute or two the first time)"
	$(PIP) --editable .
	@touch $@

$(VENV)/test $(VENV)/dev $(VENV)/bench $(VENV)/site $(VENV)/data: $(VENV)/%: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing larl[$*] into $(VENV) (a minute or two the first time)"
	$(PIP) --editable '.[$*]'
	@touch $@
