# Every target sets up what it needs; `make help` lists them. PYTHON chooses the interpreter of a new virtual environment
# VENV, PACKAGES what is installed in it (a file of requirements/), UV the uv that installs it in place of pip, TESTS which
# tests run, MINUTES how long a soak takes, EVERY and FIRST which part of the long proof, SECONDS how long each parser is
# fuzzed, TOKENS how many altered tokens follow, MIRROR a folder with Terraform's provider, DIST where `make dist` puts what
# it builds.
# SHORT and LONG are the tests that need nothing but Python, TOOLS and TOOLS_LONG those that need more.
PYTHON ?= python3
VENV ?= .venv
MINUTES ?= 3
EVERY ?= 9
FIRST ?= $(shell date +%-j)
SECONDS ?= 60
TOKENS ?= 5000000
DIST ?= dist
TESTS ?= tests
UV ?=
SHORT := -m 'not tools and not long'
TOOLS := -m 'tools and not long'
LONG := -m 'not tools' --thorough
TOOLS_LONG := -m tools --thorough
PACKAGES ?= test
BIN := $(VENV)/bin
READY := $(VENV)/.ready-$(PACKAGES)
READY_FOR_RELEASE := $(firstword $(wildcard $(VENV)/.ready-vendor-sdks) $(VENV)/.ready-release)
READY_FOR_WHEEL := $(firstword $(wildcard $(VENV)/.ready-*) .venv-build/.ready-build)
READY_FOR_FUZZ := $(firstword $(wildcard $(VENV)/.ready-vendor-sdks) $(VENV)/.ready-fuzz)
READY_FOR_SITE := $(firstword $(wildcard $(VENV)/.ready-vendor-sdks) $(VENV)/.ready-site)
READY_FOR_DEMO := $(firstword $(wildcard $(VENV)/.ready-*) $(VENV)/.ready-demo)

# The optional dependencies and the groups behind each file of requirements/.
PARTS_container := --extra server --extra postgres --extra etcd --extra otel
PARTS_demo := --extra server --group build
PARTS_test := $(PARTS_demo) --extra postgres --extra etcd --extra otel --extra bench --extra dev
PARTS_release := $(PARTS_test) --group release
PARTS_fuzz := $(PARTS_test) --extra fuzz
PARTS_site := --group build --group site
PARTS_vendor-sdks := $(PARTS_release) --extra vendor-sdks --extra fuzz --group site

# Servers that the tests start are read from their source anew each time, unless Python may keep what it compiles.
unexport PYTHONDONTWRITEBYTECODE

RUN_TESTS = $(BIN)/python -m pytest -n auto --dist worksteal

# $(call quietly,command): prints the command's output only when it fails.
quietly = out=$$($(1) 2>&1) || { printf '%s\n' "$$out" >&2; echo 'failed: $(1)' >&2; exit 1; }

# $(call told,command,count): a line for each package that pip gets, and all that it says when it fails.
told = { PYTHONUNBUFFERED=1 $(1) 2>&1; echo "exit $$?"; } | tee $(VENV)/pip.log | { n=0; while read -r word name rest; do \
	case $$word in \
		Collecting) n=$$((n + 1)); echo "  $$n of $(2): $$name" >&2;; \
		Installing) echo '  installing them ...' >&2;; \
		exit) [ "$$name" -eq 0 ] || { cat $(VENV)/pip.log >&2; exit 1; };; \
	esac; done; }

.DEFAULT_GOAL := help
.PHONY: help test test-tools test-all test-tools-all pytest lint fix demo demo-cluster dev prove endure hostile soak fuzz mutants advisories terraform chart docs site screenshot bench \
	figures wheel dist release image lint-workflows lock clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

test: lint pytest ## Lint, check types and contracts, run the tests (minutes)

pytest: $(READY) ## Run the tests, or those of TESTS
	@$(RUN_TESTS) $(SHORT) $(TESTS)

test-tools: $(READY) ## Run the tests that need PostgreSQL, Go, Node or the vendor's SDKs (minutes)
	@$(RUN_TESTS) $(TOOLS) $(TESTS)

test-all: $(READY) ## Tell every story on both servers, with hundreds of random lives and examples (half an hour)
	@$(RUN_TESTS) $(LONG) $(TESTS)

test-tools-all: $(READY) ## The same of the tests that need PostgreSQL, Go, Node or the vendor's SDKs
	@$(RUN_TESTS) $(TOOLS_LONG) $(TESTS)

lint: $(READY) ## Check style, import contracts, types and prose
	@failed=; for check in 'ruff check' 'ruff format --check' lint-imports mypy basedpyright 'python -m tests.words'; do \
		out=$$($(BIN)/$$check 2>&1) || { printf '%s\n' "$$out" >&2; failed="$$failed, $$check"; }; \
	done; [ -z "$$failed" ] || { echo "failed: $${failed#, }" >&2; exit 1; }

fix: $(READY) ## Repair style as far as tools can
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

demo: $(READY_FOR_DEMO) ## Show all main features on a simulated Azure, then stop
	@$(BIN)/python -m cloudid_servers.demo

demo-cluster: $(READY) ## Show two servers over one PostgreSQL (STORE=etcd: three members of etcd), and what happens when one is killed
	@$(BIN)/python -m cloudid_servers.demo_cluster $(STORE)

dev: $(READY_FOR_DEMO) ## Leave a server with a simulated cloud running
	@$(BIN)/python -m cloudid_servers.cli dev

prove: test-all test-tools-all ## Run all tests at length, of all pairs of faults each day another ninth, thousands of random lives (hours)
	@$(BIN)/python -m tests.simulation.prove --every $(EVERY) --first $(FIRST)
	@$(BIN)/python -m pytest tests/servers/test_kill_leases.py --cycles 20 --timeout 1800
	@$(BIN)/python -m pytest tests/nodes/test_kill_cluster.py --cycles 9 --timeout 1800

endure: $(READY) ## Kill servers, workers, databases and members of etcd amid every request and fault (an hour)
	@$(BIN)/python -m tests.endurance.kills
	@$(BIN)/python -m pytest -n 0 --timeout 0 -m "long or not long" --cycles 200 tests/nodes/test_kill_cluster.py -k nothing_is_leaked

hostile: $(READY) ## Attack each server in every known way: nobody else may notice (half an hour)
	@$(BIN)/python -m tests.endurance.hostile

soak: $(READY) ## Watch each server for MINUTES: memory, descriptors and store must stay flat; pictures in build/
	@for server in trio_server aiohttp_server; do \
		$(BIN)/python -m tests.endurance.soak --server $$server --minutes $(MINUTES) --plot build/soak-$$server.svg || exit 1; \
	done

fuzz: $(READY_FOR_FUZZ) ## Fuzz each parser for SECONDS, by coverage, then alter TOKENS login tokens (an hour)
	@$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --tokens $(TOKENS)

mutants: $(READY) ## Put 150 mistakes into the packages that security rests on: the tests notice 95 % (half an hour)
	@nice $(BIN)/python -m tests.mutants

advisories: $(READY) ## Compare what is installed, pinned and admitted with the published weaknesses of dependencies
	@$(BIN)/python -m tests.incidents.advisories

terraform: $(READY) ## Take everything that Terraform makes through its whole life, with the provider in the folder MIRROR
	@$(BIN)/python -m pytest tests/terraform --terraform-mirror "$(MIRROR)"

chart: $(READY) ## Render the Helm chart and check it with Kubernetes' schemas; builds Helm with Go where it is missing (minutes)
	@command -v helm >/dev/null || { command -v go >/dev/null || { echo 'Go is needed: https://go.dev/doc/install' >&2; exit 1; }; \
		echo 'Building Helm ...' >&2; GOBIN=$(CURDIR)/build go install helm.sh/helm/v3/cmd/helm@v3.16.4; }
	@$(BIN)/python -c 'import kubernetes_validate' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt kubernetes-validate
	@PATH="$(CURDIR)/build:$$PATH" $(BIN)/python -m pytest -q tests/hosting

docs: $(READY) ## Print the reference pages from the tables
	@$(BIN)/python -m tests.reference.pages
	@$(BIN)/python -m tests.contract.rows > tests/contract/rows.md

site: $(READY_FOR_SITE) ## Build the site of all pages in build/site: no warning and no dead link is let through
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --doctree-dir build/site-cache --conf-dir docs . build/site

screenshot: $(READY) ## Take the picture of the page that README shows, with Chromium
	@$(BIN)/python -m tests.ui.browser docs/page.png

bench: $(READY) ## Measure the verification of logins, and the servers (minutes)
	@$(BIN)/python -m benchmarks.login_verification
	@$(BIN)/python -m benchmarks.servers

figures: $(READY) ## Hold every figure of speed against its bound (minutes)
	@$(BIN)/python -m benchmarks.figures

wheel: $(READY_FOR_WHEEL) ## Build the wheel and the source archive into DIST: the same commit always gives the same bytes
	@git diff --quiet HEAD || { echo 'commit first: a wheel is built from a commit' >&2; exit 1; }
	@rm -rf $(DIST)
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(dir $(READY_FOR_WHEEL))bin/python -m hatchling build --directory $(DIST) >/dev/null

dist: wheel $(READY_FOR_RELEASE) ## Besides, install the wheel in an empty environment and list its parts there (SBOM, CycloneDX)
	@$(call quietly,DIST=$(DIST) deploy/container/install.sh $(DIST)/installed)
	@version=$$($(BIN)/python -m hatchling version) && \
		sed "s/^dynamic = .*/version = \"$$version\"/" pyproject.toml > $(DIST)/installed/pyproject.toml && \
		$(BIN)/python -m cyclonedx_py environment --pyproject $(DIST)/installed/pyproject.toml --mc-type application \
		--output-reproducible --spec-version 1.6 --output-file $(DIST)/cloudid-$$version.cdx.json $(DIST)/installed/opt/cloudid/bin/python
	@rm -rf $(DIST)/installed

release: dist ## Build a release, check it, and follow the pages with its wheel: everything but publishing
	@$(BIN)/python -m tests.release.ready $(TAG)
	@$(RUN_TESTS) tests/release --built $(DIST)

image: ## Build the image with podman or docker, and run it once
	@deploy/container/try.sh

lint-workflows: ## Check the workflows in .github with actionlint, which needs Go
	@command -v go >/dev/null || { echo 'Go is needed: https://go.dev/doc/install' >&2; exit 1; }
	@mkdir -p build && GOBIN=$(CURDIR)/build go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
	@build/actionlint

clean: ## Remove everything that tools made
	@rm -rf .venv .venv-* .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock: .venv-uv/bin/uv ## Write requirements/ anew: what constraints.txt pins, with hashes
	@$(foreach set,container demo site test fuzz release vendor-sdks,$< pip compile --quiet --universal --generate-hashes \
		--no-header --no-annotate --python-version 3.11 --constraint constraints.txt $(PARTS_$(set)) \
		--output-file requirements/$(set).txt pyproject.toml && ) true
	@$< pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--constraint constraints.txt --group pyproject.toml:build --output-file requirements/build.txt

.venv-uv/bin/uv:
	@$(call quietly,$(PYTHON) -m venv .venv-uv)
	@$(call quietly,.venv-uv/bin/python -m pip install --disable-pip-version-check --no-deps uv==0.13.9)

# What builds the wheel, and nothing else.
.venv-build/.ready-build: requirements/build.txt
	@$(call quietly,$(PYTHON) -m venv .venv-build)
	@$(call quietly,.venv-build/bin/python -m pip install --disable-pip-version-check --require-hashes -r $<)
	@touch $@

$(VENV)/.ready-%: requirements/%.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	@echo 'Setting up $(VENV) ...' >&2
	@$(call quietly,$(PYTHON) -m venv $(VENV))
ifeq ($(UV),)
	@$(call told,$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r $<,$$(grep -c == $<))
else
	@$(UV) pip install --python $(BIN)/python --require-hashes -r $<
endif
	@$(call quietly,$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .)
	@touch $@
