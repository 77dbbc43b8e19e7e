# GNU make 3.81 (macOS) and later.

# The first of these that is new enough and can make an environment; `make PYTHON=/path/to/python` picks another.
PYTHON ?= $(shell for python in python3.11 python3 python3.14 python3.13 python3.12; do \
	$$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$python && break; done)

BIN := .venv/bin
READY := .venv/.stamp
LANGGRAPH := .venv-langgraph
ADK := .venv-adk
RAY := .venv-ray
DOCS := .venv-docs
DEMO := .venv-demo
RELEASE := .venv-release
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
CHECKED := $(wildcard src tests benchmarks examples)
PEERS := agentevals==0.0.9 pydantic-evals==2.62.0 deepeval==4.3.1 inspect-ai==0.3.285 azure-ai-evaluation==1.18.10
COMPILE = $$tmp/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $(LOCK)

NO_PYTHON = echo 'No Python 3.11 or later here can make a virtual environment.' \
	'Debian, Ubuntu: apt-get install python3-venv. Or name one: make PYTHON=/path/to/python' >&2;

# Without compiled files every import looks two to three times slower than it is.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: lint-client help demo check test fast all-tests coverage environments lint format bench bench-peers soak engines docs docs-links release dist screenshots record-samples frameworks lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO)/.stamp ## show what agentv does, in a few seconds; it leaves the project ./demo
	@$(DEMO)/bin/python examples/demo.py

check: $(READY) ## linters, types and the fast tests (ARGS='-k name' to choose)
	@$(MAKE) -s -j2 lint fast

test: environments ## linters, types and all tests (ARGS='-k name' to choose)
	@$(MAKE) -s -j2 lint all-tests

# mypy uses one core only: the tests use the other meanwhile.
fast: $(READY)
	@$(BIN)/python -m pytest -q -m 'not slow and not soak and not engine' --hypothesis-profile=quick $(ARGS)

all-tests: $(READY)
	@$(BIN)/python -m pytest -q $(ARGS)

coverage: environments ## all tests, and which lines and branches they reach
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q $(ARGS)
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report

environments: # what tests need, set up at once: most of it is waiting for downloads
	@$(MAKE) -s -j3 $(READY) $(LANGGRAPH)/.stamp $(ADK)/.stamp

lint: $(READY) lint-client ## ruff, mypy strict, import layers, and tsc where it is installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy $(CHECKED)
	@$(BIN)/lint-imports --no-logo

lint-client:
	@if command -v tsc >/dev/null; then tsc -p tsconfig.json; else echo 'no tsc here: the scripts of the viewer are not checked'; fi

format: $(READY) ## let ruff fix and format what it can
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

bench: $(READY) ## measure speed and agreement against peers
	@$(BIN)/python -m benchmarks $(ARGS)

bench-peers: $(READY) ## install the peers, and print ours beside them
	@$(BIN)/python -m benchmarks.side_by_side

docs: $(DOCS)/.stamp ## build the documentation site in build/docs; a warning or a broken link inside it is an error
	@$(DOCS)/bin/python -m sphinx -q -E -W --keep-going -j auto -b html docs build/docs
	@echo 'The site is built: build/docs/index.html'

docs-links: $(DOCS)/.stamp ## ask every address outside of the documentation whether it still answers
	@$(DOCS)/bin/python -m sphinx -q -E -b linkcheck docs build/docs-links

release: $(READY) ## commit the release of VERSION: the version, and the changelog from its fragments
	@test -n "$(VERSION)" || { echo 'Name the version: make release VERSION=1.2.3' >&2; exit 1; }
	@test -z "$$(git status --porcelain --untracked-files=no)" || { echo 'Commit your changes first.' >&2; exit 1; }
	@$(BIN)/python -m hatchling version $(VERSION) >/dev/null
	@$(BIN)/towncrier build --yes --version $(VERSION)
	@git add src/agentv/__init__.py CHANGELOG.md
	@git commit --quiet --message 'Release $(VERSION)'
	@echo 'Committed. Read CHANGELOG.md, run make dist, and go on with RELEASING.md.'

dist: $(RELEASE)/.stamp ## build the wheel and the sdist, check them, and walk through them on every Python found
	@rm -rf dist
	@$(RELEASE)/bin/python -m hatchling build
	@$(RELEASE)/bin/twine check --strict dist/*
	@.ci/check-dist

screenshots: $(READY) ## take the pictures of the viewer in docs/images anew
	@$(BIN)/python -m tests.support.screenshots

soak: $(READY) ## the long random tests, and the property tests with all of their examples
	@$(BIN)/python -m pytest -q -m 'soak or hypothesis' --hypothesis-profile=thorough $(ARGS)

engines: $(READY) $(RAY)/.stamp ## run agents on a real Ray, which has an environment of its own
	@$(BIN)/python -m pytest -q -n 1 -m engine $(ARGS)

record-samples: ## record tests/data/replies anew, with the real libraries (ARGS=strands for one)
	@$(PYTHON) tests/data/record $(ARGS)

frameworks: $(READY) ## run the real libraries, and say what changed (ARGS=strands for one, LATEST=1 for the newest)
	@$(BIN)/python -m tests.frameworks.live $(if $(LATEST),--latest) $(ARGS)

# uv writes a lock that names no index; which index it asks is the environment's affair (UV_DEFAULT_INDEX).
lock: ## pin the requirements anew (LOCK=--upgrade for newer versions)
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && $(PYTHON) -m venv "$$tmp" && \
	"$$tmp/bin/python" -m pip -qq --disable-pip-version-check install uv && \
	$(COMPILE) --group dev pyproject.toml --output-file requirements/dev.txt && \
	$(COMPILE) --group docs --output-file requirements/docs.txt && \
	$(COMPILE) --group release --output-file requirements/release.txt && \
	printf 'langgraph\nlanggraph-cli[inmem]\n' | $(COMPILE) - --output-file requirements/langgraph.txt && \
	echo google-adk | $(COMPILE) - --output-file requirements/adk.txt && \
	$(COMPILE) --extra ray pyproject.toml --output-file requirements/ray.txt && \
	for peer in $(PEERS); do \
		echo "$$peer" | $(COMPILE) - --output-file "requirements/bench-$${peer%%==*}.txt" || exit 1; done && \
	if grep -n '://' requirements/*.txt; then echo 'A lock must not name an index.' >&2; exit 1; fi

clean: ## remove environments, caches and builds
	@rm -rf .venv $(LANGGRAPH) $(ADK) $(RAY) $(DOCS) $(DEMO) $(RELEASE) demo .venv-bench* .venv-samples .bench-node build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .coverage*
	@find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { $(NO_PYTHON) exit 1; }
	@echo 'Setting up .venv (once) ...' >&2
	@$(PYTHON) -m venv .venv
	@$(PIP) install --require-hashes --requirement requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $(READY)

# The package as users install it, without the requirements of development. A pip of its own, and compiled files of all
# modules, would take longer than the rest.
$(DEMO)/.stamp: pyproject.toml src/agentv/__init__.py
	@test -n "$(PYTHON)" || { $(NO_PYTHON) exit 1; }
	@echo 'Installing agentv and its requirements into $(DEMO) (once, about 15 seconds) ...' >&2
	@rm -rf $(DEMO)
	@if $(PYTHON) -c 'import pip, sys; sys.exit(int(pip.__version__.partition(".")[0]) < 23)' 2>/dev/null; then \
		$(PYTHON) -m venv --without-pip $(DEMO) && pip="$(PYTHON) -m pip --python $(DEMO)/bin/python"; \
	else $(PYTHON) -m venv $(DEMO) && pip="$(DEMO)/bin/python -m pip"; fi && \
	$$pip -qq --disable-pip-version-check install --no-compile .
	@touch $@

# A server to test against, a library whose events are read, what builds the documentation and what checks a release:
# each brings packages of its own, kept apart from ours.
$(LANGGRAPH)/.stamp $(ADK)/.stamp $(RAY)/.stamp $(DOCS)/.stamp $(RELEASE)/.stamp: .venv-%/.stamp: requirements/%.txt
	@echo 'Setting up .venv-$* (once) ...' >&2
	@$(PYTHON) -m venv .venv-$*
	@.venv-$*/bin/python -m pip -qq --disable-pip-version-check install --require-hashes --requirement $<
	@touch $@
