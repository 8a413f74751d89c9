# make train   set up, train on the synthetic graph, show the table and the figure
# make test    set up, check style, types and imports, run all tests
# make golden  compare all that is recorded in tests/golden: make golden ARGS=reader
# make bench   a training step beside what one would run instead: make bench ARGS="--size pubmed"
# make bench-scale  time and memory over the size of generated graphs
# make attack  hostile graphs, damaged runs, kills and signals: make attack ARGS="--minutes 60"
# make gpu-check  on a machine with a GPU: kernels, batches, resume, the speeds; eight minutes
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: train test golden bench bench-scale attack gpu-check lint clean

train: .venv/.ready
	$(BIN)/lgdgcn train synthetic --compare gcn,disengcn,lgdgcn-paper

test: .venv/.ready-dev .venv/.chromium lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

golden: .venv/.ready-dev
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m golden check $(ARGS)
	@echo "trainings and speed, side by side with another checkout: tests/golden/compare.py"

bench: .venv/.ready
	$(BIN)/python benchmarks/step.py $(ARGS)

bench-scale: .venv/.ready
	$(BIN)/python benchmarks/scale.py $(ARGS)

attack: .venv/.ready-dev
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m attack $(ARGS)

gpu-check: .venv/.ready-dev
	$(BIN)/python benchmarks/gpu_check.py $(ARGS)

lint: .venv/.ready-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

.venv/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "lgdgcn needs Python 3.11 or newer; say which: make PYTHON=python3.12 ..."; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
	  || { echo "python3-venv is missing, installing it"; apt-get update -q && apt-get install -y -q python3-venv; } \
	  || { echo "install python3-venv first: sudo apt install python3-venv"; exit 2; }
	@echo "setting up .venv (once; PyTorch is large, this takes a few minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) -e .
	@touch $@

.venv/.ready-dev: .venv/.ready
	@$(PIP) -e '.[dev]'
	@touch $@

.venv/.chromium: .venv/.ready-dev
	@sh tests/browser/get-chromium.sh
	@touch $@

clean:
	rm -rf .venv build src/*.egg-info
