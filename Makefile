# `make run` and `make test` do everything, set-up included.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# Preset for `make run`, for example CONF=conf/digits.toml; ARGS takes options such as --clients 3.
CONF ?=
ARGS ?=

export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION := 1
export FLWR_DISABLE_UPDATE_CHECK := 1
export FLWR_TELEMETRY_ENABLED := 0
export OMP_NUM_THREADS := 1

.PHONY: help setup run test test-slow integration integration-ci faults browser screenshots lint docs fuzz
.PHONY: bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: .venv/.ready  ## create .venv with the tested versions

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[run,dev]"
	@grep -q FLWR_TELEMETRY_ENABLED $(BIN)/activate || printf '%s\n' \
		'# Flower: no installation at run time, no telemetry, no check for updates' \
		'export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1' \
		'export FLWR_DISABLE_UPDATE_CHECK=1' \
		'export FLWR_TELEMETRY_ENABLED=0' >> $(BIN)/activate
	@touch $@

run: setup  ## train on the default data through `flwr run .` and print the result
	@$(BIN)/fedlap run --compare $(if $(CONF),--conf $(CONF)) $(ARGS)

test: setup  ## all tests but the slow ones and those on real SuperNodes
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow and not integration and not faults"

test-slow: setup  ## the slow tests
	$(BIN)/python -m pytest -m slow

integration: setup  ## real SuperNodes over TLS; with FEDLAP_DATA also on the benchmark data
	$(BIN)/python -m pytest -m integration --durations=0

integration-ci: setup  ## four of these tests
	$(BIN)/python -m pytest -m "integration and ci" --durations=0

faults: setup  ## kill processes, cut the network, fill a disk; needs root
	$(BIN)/python -m pytest -m faults --durations=0

fuzz: setup  ## send N mutated messages to clients and N mutated replies to servers (N=20000)
	$(BIN)/python -m tests.fuzz $(or $(N),20000) $(ARGS)

lint: setup  ## ruff, mypy, who may import whom, and whether what is generated is current
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/reference.py --check

docs: setup  ## build the documentation as a site in build/site; any warning is an error
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[site]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

browser: setup  ## open reports in Chromium, which is installed where it is missing (apt, as root)
	@command -v chromium > /dev/null || { apt-get update -q && \
		apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core; } || { \
		echo "Chromium is missing and could not be installed: install it, then try again" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e ".[browser,mlflow,tensorboard]"
	$(BIN)/python -m pytest tests/reports/test_trackers.py
	FEDLAP_BROWSER=$$(command -v chromium) $(BIN)/python -m pytest -m browser

screenshots: setup  ## write docs/images anew
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[browser]"
	FEDLAP_BROWSER=$$(command -v chromium) $(BIN)/python docs/screenshots.py

bench: setup  ## measure what the in-process grid costs
	$(BIN)/fedlap bench grid $(ARGS)

# Containers where there is a Docker engine, else the same services as processes of this machine.
.PHONY: demo
DEMO := -f docker/compose.yml $(if $(TLS),-f docker/compose.tls.yml) $(if $(GPU),-f docker/compose.gpu.yml)
demo: setup  ## three banks, a run, and what each ends with in demo/; TLS=1 and GPU=1 add these
	@if docker info > /dev/null 2>&1; then \
		docker compose $(DEMO) run --build --rm run; code=$$?; \
		for bank in 00 01 02; do [ $$code = 0 ] || break; mkdir -p demo/bank-$$bank; \
			docker compose $(DEMO) run --rm predict-$$bank; \
			for file in predictions.csv report.html; do \
				docker compose $(DEMO) cp superexec-$$bank:/organisation/data/$$file demo/bank-$$bank/; \
			done; echo "bank-$$bank: demo/bank-$$bank"; done; \
		docker compose $(DEMO) down; exit $$code; \
	else \
		echo "No Docker engine here: the same services run as processes of this machine." >&2; \
		$(BIN)/python docker/processes.py $(filter %.yml,$(DEMO)) --results demo; \
	fi

clean:  ## remove what `make` made
	rm -rf .venv .flwr .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info build
