# Two commands on a fresh machine: `make demo` and `make test`. Everything lives in $(VENV).
PYTHON ?= python3
VENV   ?= .venv
LLAMA  ?= .llama
VLLM   ?= .vllm
CONTRACTS ?= .contracts
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# a test file is compiled with its asserts rewritten, which takes as long as all imports: once, also where the environment
# forbids to write what was compiled
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --dist loadfile
DEMO   ?= Which river flows through the city where the inventor of the telephone was born?

.PHONY: demo test test-slow test-all faults engines contracts mutants lint types mypy pyright docs bench results resolve constraints clean

demo: $(VENV)/.core  ## Answer a bundled 3-hop question step by step: no key, no model, no network
	$(BIN)/ras-agent ask --sample --save trace.html "$(DEMO)"

test: $(VENV)/.dev  ## Run the tests but for the slow ones (5 minutes on two processors)
	$(PYTEST) -m "not slow" $(TESTS)

# in the files' order: by default files with few tests come last, and here those with one test are the longest
test-slow: $(VENV)/.dev  ## Run the slow tests: kills, trainings, browsers, commands of the pages, other processes
	$(PYTEST) --no-loadscope-reorder -m slow $(TESTS)

test-all: $(VENV)/.dev  ## Run all tests, those of properties with more examples
	$(PYTEST) --hypothesis-profile=thorough $(TESTS)

faults: $(VENV)/.dev  ## Attack the package: kills, full disks, hostile texts and servers; prints tried and failed (minutes)
	$(BIN)/python -m pytest --hypothesis-profile=thorough tests/faults --timeout 900 $(FAULTS)

engines: $(LLAMA)/.made $(VLLM)/.made  ## Try the package with llama.cpp, transformers and vLLM on the CPU, in environments of their own
	ENGINE=llama.cpp $(LLAMA)/bin/python -m pytest tests/engines --timeout 900 $(ENGINES)
	ENGINE=transformers $(LLAMA)/bin/python -m pytest tests/engines/test_small_model.py --timeout 1800 $(ENGINES)
	ENGINE=vllm $(VLLM)/bin/python -m pytest tests/engines --timeout 900 $(ENGINES)

contracts: $(CONTRACTS)/.made  ## Try the package beside the trainers and evaluators that it is made for, in environments of their own
	$(CONTRACTS)/bin/python -m pytest tests/contracts --timeout 600 $(TRAINERS)
	$(CONTRACTS)/inspect/bin/python -m pytest tests/contracts/test_formats.py -k inspect --timeout 600
	$(CONTRACTS)/gateways/bin/python -m pytest tests/contracts/test_gateways.py --timeout 600
	$(CONTRACTS)/frameworks/bin/python -m pytest tests/contracts/test_frameworks.py
	PYTHONPATH=. $(CONTRACTS)/verl/bin/python -m pytest --noconftest tests/contracts/test_verl.py
	PYTHONPATH=. $(CONTRACTS)/ragas/bin/python -m pytest --noconftest tests/contracts/test_formats.py -k ragas

mutants: $(VENV)/.mutants  ## Plant small bugs in the core and count those that the tests notice (minutes to hours)
	$(BIN)/python -m tests.mutants $(MUTANTS)

lint: $(VENV)/.dev  ## Style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: mypy pyright  ## mypy --strict, and pyright as editors run it

mypy: $(VENV)/.dev
	$(BIN)/mypy

pyright: $(VENV)/.dev
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/.dev  ## Build the docs site into build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: $(VENV)/.dev  ## Speed beside named peers, one table; appended to build/bench.jsonl, where a fifth worse than before is marked
	$(BIN)/python -m tests.postgres_servers $(BIN)/python -m ras_agent.eval.bench --json build/bench.jsonl $(BENCH)

results: $(VENV)/.dev  ## Measure lab/results.md anew: make results DATA=folder
	PATH="$(abspath $(BIN)):$$PATH" eval/bench/results.sh "$(DATA)"

resolve:  ## Resolve four sets of extras against what package indexes have today, installing nothing (minutes)
	.ci/resolve

constraints: $(VENV)/.dev  ## Write the versions of this environment to constraints.txt, once its tests have passed
	(sed -n '/^#/p' constraints.txt; $(BIN)/python -m pip list --format=freeze --exclude ras-agent --exclude pip \
	  | sed 's/+.*//' | sort --ignore-case) > constraints.new && mv constraints.new constraints.txt

clean:  ## Remove the environments and everything built
	rm -rf $(VENV) $(LLAMA) $(VLLM) $(CONTRACTS) build dist *.egg-info

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(LLAMA)/.made $(VLLM)/.made: tests/engines/environment.sh
	tests/engines/environment.sh $(if $(filter $(LLAMA)/%,$@),llama.cpp,vllm) $(@D)

$(CONTRACTS)/.made: tests/contracts/environment.sh
	tests/contracts/environment.sh $(@D)

$(VENV)/.mutants: $(VENV)/.dev
	$(PIP) --editable '.[mutants]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.core
