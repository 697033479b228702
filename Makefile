# Every command a person needs. Each sets up what it uses, so a fresh clone may begin with any of them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# The locks name everything, so pip follows no dependency by itself: one with an extra it would look up anew, and fail at whatever
# release is newer than the lock.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all:
PYTEST := $(BIN)/python -m pytest

# Compiled modules are kept, whatever the surroundings say: the tests start hundreds of processes, and each would compile all anew.
unexport PYTHONDONTWRITEBYTECODE

QUICK := tests/architecture tests/unit tests/conformance

.PHONY: help setup run check test test-full services services-stop bench bench-full simulate-mutants docs docs-site pictures lock clean

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(VENV)/test.stamp ## everything for running, testing and measuring, in .venv

run: $(VENV)/run.stamp ## the demonstration on 127.0.0.1:8000 (NOROSHI_PORT)
	@exec $(BIN)/noroshi serve --dev --data ./.noroshi

check: $(VENV)/test.stamp ## the quick gate: style, types, imports, docs, unit and conformance tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --strict src
	$(PYTEST) -n 2 $(QUICK) -m "quick and not slow"

test: check ## every test that this machine can run
	$(PYTEST) -n 3 --dist loadgroup --no-loadscope-reorder tests -m "not quick and not slow"

test-full: check ## also the slow ones: the nightly and release columns
	NOROSHI_TEST_FULL=1 $(PYTEST) -n 2 --dist loadgroup --no-loadscope-reorder tests

services: $(VENV)/test.stamp ## starts the servers that tests use and keeps them; without it each run starts its own
	@$(BIN)/python -m tests.services start

services-stop: ## ends them
	@$(or $(wildcard $(BIN)/python),$(PYTHON)) -m tests.services stop

bench: $(VENV)/test.stamp ## the figures, side by side in one run; some of them: make bench B="B1 B2"
	$(BIN)/python -m bench $(B)

bench-full: $(VENV)/test.stamp ## the figures at full size
	$(BIN)/python -m bench --full $(B)

simulate-mutants: $(VENV)/test.stamp ## plants known bugs one at a time; the simulator must find each
	$(BIN)/python -m tests.faults.simulate_mutants

docs: $(VENV)/test.stamp ## writes the tables in docs/ anew
	$(BIN)/python -m tests.architecture.tables
	$(BIN)/python -m bench.published

docs-site: $(VENV)/test.stamp ## builds the docs as a site in build/site
	@$(BIN)/python -m tests.architecture.site

pictures: $(VENV)/test.stamp ## takes the pictures of the console and the shop in docs/pictures anew
	$(BIN)/python -m tests.browser.pictures

lock: $(VENV)/test.stamp ## pins the newest versions that requirements/*.in allow
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-tools
	cd requirements && for name in run test; do ../$(BIN)/pip-compile --quiet --upgrade --generate-hashes --strip-extras \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --annotation-style line \
		--output-file $$name.lock $$name.in || exit 1; done

clean: ## removes what was made here; the demonstration's data stays
	@test ! -d build/services || $(MAKE) --no-print-directory services-stop
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed (Debian: apt install python3 python3-venv)." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null \
		|| { rm -rf $(VENV); echo "python3 -m venv does not work here (Debian: apt install python3-venv)." >&2; exit 1; }

# The project is put on the path by a .pth file: nothing is built, so nothing unpinned is fetched to build it.
$(VENV)/run.stamp: $(VENV)/pyvenv.cfg requirements/run.lock
	$(PIP) -r requirements/run.lock
	@echo "$(CURDIR)/src" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/noroshi.pth"
	@printf '#!/bin/sh\nexec "$$(dirname "$$(readlink -f "$$0")")/python" -m noroshi.entrypoints.cli.main "$$@"\n' \
		> $(BIN)/noroshi && chmod +x $(BIN)/noroshi
	@touch $@

$(VENV)/test.stamp: $(VENV)/run.stamp requirements/test.lock
	$(PIP) -r requirements/test.lock
	@$(BIN)/python -m pip --disable-pip-version-check check > $(VENV)/check.txt || { cat $(VENV)/check.txt >&2; exit 1; }
	@touch $@
