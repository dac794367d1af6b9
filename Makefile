# Two commands do everything: `make serve` and `make test`. Both install what they need into .venv, pinned.

PYTHON ?= python3
PORT ?= 50051
METRICS_PORT ?= 9464
DEVICE ?= cpu

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt
RUNTIME := $(if $(filter cuda,$(DEVICE)),gpu,cpu)
# models/ is committed: the shipped checkpoint as int8, which is all that serving on a CPU needs.
MODELS := $(if $(filter cuda,$(DEVICE)),build/float16,models)
SHIPPED := models/en-de/1
WEIGHTS := checkpoints/en-de/model.safetensors
BUNDLE := build/float32/en-de/1/manifest.json
HALF := build/float16/en-de/1/manifest.json
CHECKPOINT := $(wildcard checkpoints/en-de/*.safetensors checkpoints/en-de/*.json checkpoints/en-de/*.model)
EXPORTER := $(wildcard export/convert.py export/architecture/*.py export/graphs/*.py export/importers/*.py service/bundle/*.py)

.PHONY: serve export test test-full check format proto bench clean help

help: ## List the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

serve: .venv/installed-$(RUNTIME) ## Serve the shipped model (PORT=, METRICS_PORT=, DEVICE=cpu|cuda)
ifeq ($(DEVICE),cuda)
	@$(MAKE) --no-print-directory $(HALF)
else
	@$(BIN)/python -m service.bundle.freshness $(SHIPPED) $(WEIGHTS) || $(MAKE) --no-print-directory export
endif
	@exec $(BIN)/dragoman serve --models $(MODELS) --port $(PORT) --metrics-port $(METRICS_PORT) --device $(DEVICE)

export: $(BUNDLE) ## Export the shipped checkpoint again: float32 to build/, int8 to models/
	@$(BIN)/python -m export quantize $(dir $(BUNDLE)) --calibration checkpoints/en-de/sentences.tsv --output $(SHIPPED)

test: check $(BUNDLE) ## Run all checks and tests
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

test-full: check $(BUNDLE) ## Also run the tests that take many minutes
	@$(BIN)/python -m pytest -m "full or not full" $(PYTEST_ARGS)

check: .venv/installed-dev ## Lint, format, types, import rules
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary --num-workers 2
	@$(BIN)/lint-imports --no-logo

format: .venv/installed-dev ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --quiet --fix
	@$(BIN)/ruff format --quiet

proto: .venv/installed-dev ## Generate service/pb from proto/
	@$(BIN)/python -m grpc_tools.protoc -Iservice/pb=proto --python_out=. --pyi_out=. --grpc_python_out=. \
	    $$(find proto -name '*.proto')

bench: .venv/installed-dev $(BUNDLE) ## Run the benchmarks; results in build/bench
	@$(BIN)/python -m benchmarks

clean: ## Remove what was built and installed
	@rm -rf .venv build dist *.egg-info

$(BUNDLE): $(CHECKPOINT) $(EXPORTER) | .venv/installed-$(RUNTIME) .venv/installed-export
	@$(BIN)/python -m export convert checkpoints/en-de --output $(@D)

$(HALF): $(CHECKPOINT) $(EXPORTER) | .venv/installed-$(RUNTIME) .venv/installed-export
	@$(BIN)/python -m export convert checkpoints/en-de --precision float16 --output $(@D)

.venv/created:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else \
	    f"Dragoman needs Python 3.11 to 3.13, {sys.executable} is {v[0]}.{v[1]}; choose one with PYTHON=python3.11")'
	@echo "Creating .venv ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) install --quiet --constraint constraints.txt pip
	@touch $@

# Installing one build of ONNX Runtime removes the other: they share files and break each other.
.venv/installed-cpu: pyproject.toml constraints.txt | .venv/created
	@echo "Installing the server (CPU) ..."
	@if [ -e .venv/installed-gpu ]; then $(PIP) uninstall --quiet --yes onnxruntime-gpu; rm .venv/installed-gpu; fi
	@$(INSTALL) --editable '.[cpu]'
	@touch $@

.venv/installed-gpu: pyproject.toml constraints.txt | .venv/created
	@echo "Installing the server (GPU) ..."
	@if [ -e .venv/installed-cpu ]; then $(PIP) uninstall --quiet --yes onnxruntime; rm .venv/installed-cpu; fi
	@$(INSTALL) --editable '.[gpu]'
	@touch $@

.venv/installed-export: pyproject.toml constraints.txt | .venv/created
	@echo "Installing the exporter (torch, onnx) ..."
	@$(INSTALL) --editable '.[export]'
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt | .venv/installed-$(RUNTIME) .venv/installed-export
	@echo "Installing the development tools ..."
	@$(INSTALL) --group dev
	@touch $@
