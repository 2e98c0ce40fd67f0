# make studio · make demo · make test · make check · make serve MODEL=runs/demo/model · make bench · make bench-serving
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
MODEL  ?= runs/demo/model
PORT   ?= 8000

# Without bytecode each of the many processes that tests start would compile the packages again.
unexport PYTHONDONTWRITEBYTECODE

SERVING_BENCHMARKS := overhead recording overload replicas memory_bound

.PHONY: help install studio demo demo-loop test test-all test-loaded lint check image-test scale-test licences sbom audit notes serve bench bench-serving clean

help:
	@echo "make studio   the service with data sets, labelling and training in the browser, on PORT ($(PORT)); files in runs/studio"
	@echo "make demo     toy data -> training -> report -> artifact -> HTTP answer, in runs/demo"
	@echo "make demo-loop  inspect -> review -> export -> retrain -> shadow -> promote, on synthetic parts, in runs/demo_loop"
	@echo "make install  the development environment in $(VENV); test, check and bench install it by themselves;"
	@echo "              GPU=1 installs TensorFlow with CUDA, another 3 GB"
	@echo "make test     the fast tests, in minutes; FLAGS=--cov measures line coverage"
	@echo "make test-all all tests: clusters, killed runs, browsers, the commands of the documentation"
	@echo "make test-loaded  make test with eight busy loops in the background"
	@echo "make lint     format, types, spelling and words"
	@echo "make check    make lint, licences, manifests in deploy, and the documentation as a site in build/site"
	@echo "make image-test  build the image of the service, run it and show its layers; needs Docker, or root and buildah"
	@echo "make scale-test  two replicas behind nginx, one of which is killed under load; needs nginx"
	@echo "make licences list the images' packages and licences in deploy/image/licences.md; needs the package index"
	@echo "make sbom     a bill of materials for each image, in build/sbom"
	@echo "make audit    known vulnerabilities in the images' packages; ADVISORIES=all.zip without a network"
	@echo "make notes    release notes of this version, or of VERSION=..."
	@echo "make serve    serve the artifact MODEL ($(MODEL)) on PORT ($(PORT))"
	@echo "make bench    compare inference with other libraries on two idle cores; figures in build/bench"
	@echo "make bench-serving  measure the service, half an hour; figures in build/bench-serving"
	@echo "make clean    remove $(VENV) and caches; keeps runs and data"

# GPU=1 installs TensorFlow with CUDA; an environment with CUDA keeps it.
CUDA := $(or $(filter-out 0,$(GPU)),$(wildcard $(VENV)/*installed-cuda))
ENGINE := $(if $(CUDA),gpu,tensorflow)
INSTALLED := $(VENV)/installed$(if $(CUDA),-cuda)
# Stamps avoid installing an unchanged environment again. The development environment includes the product's.
PRODUCT := $(or $(wildcard $(INSTALLED)),$(VENV)/product-installed$(if $(CUDA),-cuda))
# Only errors are printed. compileall uses all cores; pip would compile to bytecode on one.
PIP_INSTALL = $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check --constraint constraints.txt
COMPILE = $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true

install: $(INSTALLED)

$(INSTALLED): $(VENV)/pip-installed pyproject.toml
	@echo "Installing the development environment into $(VENV), once: 3.8 GB, about 210 packages, minutes."
	@$(PIP_INSTALL) --editable '.[$(ENGINE),openvino,encoder,client,batch,watch]' --group dev
	@$(COMPILE)
	@touch $@

$(filter-out $(INSTALLED),$(PRODUCT)): $(VENV)/pip-installed pyproject.toml
	@echo "Installing TensorFlow, training and the service into $(VENV), once: 3 GB, about 100 packages, minutes."
	@$(PIP_INSTALL) --editable '.[$(ENGINE),encoder,client,watch]' --group train --group serve --group record
	@$(COMPILE)
	@touch $@

# The pip that comes with Python may be too old for dependency groups.
$(VENV)/pip-installed: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	  || { echo "error: $(PYTHON): $$($(PYTHON) --version 2>&1); expected Python 3.11, 3.12 or 3.13, for which TensorFlow" \
	  "is built: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Creating the Python environment $(VENV)."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) pip
	@touch $@

studio: $(PRODUCT)
	@$(BIN)/python -m examples.studio --port $(PORT)

demo: $(PRODUCT)
	@$(BIN)/python -m examples.demo

demo-loop: $(PRODUCT)
	@$(BIN)/python -m examples.demo_loop

# The tests of a file share fixtures, so one process runs them. Three processes, because some tests wait.
PYTEST = $(BIN)/python -m pytest --numprocesses 3 --dist loadfile $(FLAGS)

test: install
	$(PYTEST)

test-all: install
	$(PYTEST) -m ""

# No test may depend on time: these run on a busy machine.
test-loaded: install
	@for loop in 1 2 3 4 5 6 7 8; do $(BIN)/python -c 'while True: pass' & loops="$$loops $$!"; done; \
	trap 'kill $$loops' EXIT; $(PYTEST)

check: lint
	$(BIN)/python -m pytest --quiet --durations 0 -m "" tests/test_deploy.py tests/test_supply_chain.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python tests/test_plain_words.py

image-test:
	$(PYTHON) -m deploy.image.check $(MODEL)

scale-test: install
	$(BIN)/python -m benchmarks.serving.replicas --json build/bench-serving/replicas.json

licences: install
	$(BIN)/python -m deploy.release.licences

sbom: install
	$(BIN)/python -m deploy.release.sbom

audit: install
ifdef ADVISORIES
	$(BIN)/python -m deploy.release.audit "$(ADVISORIES)"
else
	$(BIN)/pip-audit --strict --require-hashes --disable-pip $(patsubst %,-r %,$(wildcard deploy/image/*.txt))
endif

notes: install
	@$(BIN)/python -m deploy.release.notes $(VERSION)

serve: $(PRODUCT)
	@[ -d $(MODEL) ] || { echo "error: MODEL=$(MODEL) is not a folder; make demo creates runs/demo/model" >&2; exit 2; }
	$(BIN)/python -m api --model $(MODEL) --port $(PORT)

# Other libraries get an environment of gigabytes in build/peers.
bench: install
	@echo "About 20 minutes on two idle cores; nothing else should run on the machine."
	$(BIN)/python -m benchmarks.inference.speed $(FLAGS) --json build/bench/speed.json

# All of them run, even after one misses its target.
bench-serving: install
	@failed=0; for name in $(SERVING_BENCHMARKS); do \
	  echo "== $$name"; \
	  $(BIN)/python -m benchmarks.serving.$$name --json build/bench-serving/$$name.json || failed=1; \
	done; exit $$failed

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
