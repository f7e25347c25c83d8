# `make demo`, `make serve` and `make test`. Each makes its own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Bytecode is kept, so that workers and the programs that tests start do not compile everything anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo serve test check suite browser flower fast slow lint types contracts docs bench scoreboard format clean

demo: $(READY)
	$(BIN)/python examples/report.py

# The demo hospital with one person of each role, on http://127.0.0.1:8042, until it is stopped.
serve: $(READY)
	$(BIN)/defocus serve --demo --home demo/server

test: check suite flower

check: lint types contracts

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	touch $@

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy --num-workers 2 || $(BIN)/mypy # a worker that a busy machine starts late is given up

contracts: $(READY)
	$(BIN)/lint-imports

# Workers take work from each other, so that none waits at the end; tests/conftest.py says in which order they begin.
# Each has one core: threads of linear algebra would only wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

suite: $(READY) browser
	$(PYTEST) -m 'not long'

# Pages are tested in a real browser: Debian's, where this may install it. CHROMIUM=path names another one.
browser:
	@if command -v "$${CHROMIUM:-chromium}" > /dev/null || command -v chromium-browser > /dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	apt-get update --quiet --quiet && apt-get install --yes --quiet --quiet --no-install-recommends chromium > /dev/null; \
	else echo "The tests of the pages need Chromium. To fix: sudo apt-get install chromium, or CHROMIUM=path make test." >&2; exit 1; fi

# Flower brings an event loop and a parser that uvicorn would take up by itself, so it has an environment of its own, on top of ours.
FLOWER := .venv-flower

flower: $(FLOWER)/.ready
	$(FLOWER)/bin/python -m pytest -m '' tests/federated/test_flower.py

$(FLOWER)/.ready: $(READY)
	test -x $(FLOWER)/bin/python || $(PYTHON) -m venv $(FLOWER)
	$(BIN)/python -c 'import site; print(*(f"import site; site.addsitedir({one!r})" for one in site.getsitepackages()), sep="\n")' > "$$($(FLOWER)/bin/python -c 'import site; print(site.getsitepackages()[0])')/zz_defocus.pth"
	$(FLOWER)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt 'flwr>=1.41,<1.42'
	touch $@

# The rooms, each by itself: what tries all of them together is left to `make test`, and of tests with many cases, most of them.
fast: $(READY)
	$(PYTEST) --cases 8 $(foreach room,soundness audit docs examples,--ignore tests/$(room))

slow: $(READY) browser
	$(PYTEST) -m 'slow or long'

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Peers and us side by side; each script prints its table and writes benchmarks/results/. Adult and MNIST are not part of
# the project: make bench ADULT=folder MNIST=folder; what is not there is left out, and said.
ADULT ?= .bench/adult
MNIST ?= .bench/mnist

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,bench]'
	bash benchmarks/setup.sh
	for script in noise accounting ledger parts audit workloads streams tables scale mariadb graphs local shuffle training; do $(BIN)/python benchmarks/$$script.py || exit 1; done
	$(BIN)/python benchmarks/estimators.py $(ADULT)
	PYTHONPATH=src .bench/opacus/bin/python benchmarks/learning.py
	if [ -e $(MNIST)/train-images-idx3-ubyte.gz ]; then $(BIN)/python benchmarks/mnist.py $(MNIST) --model linear --runs 1; \
	else echo "MNIST is left out: there is no $(MNIST)/train-images-idx3-ubyte.gz."; fi

# The auditor attacks other libraries, each in an environment of its own, and every room; writes docs/scoreboard.md.
scoreboard: $(READY)
	bash benchmarks/setup.sh
	$(BIN)/python benchmarks/scoreboard.py --rooms

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) $(FLOWER) site build demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
