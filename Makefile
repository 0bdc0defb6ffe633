# The commands of this project; `make help` lists them.
PROJECT ?= .
# What `make demo` asks; "..." each. Of a project that is not this one, what every project answers.
QUESTIONS ?= $(if $(filter $(CURDIR),$(realpath $(PROJECT))),$(OURS),$(ANYBODYS))
OURS := "how are changed files noticed" "where are search results ranked" "SearchHit"
ANYBODYS := "what is this project for" "how is it tested" "where does it begin to run"
PYTHON ?= python3
BENCHMARKS ?= .benchmarks
VENV := .venv
BIN := $(VENV)/bin
# Half of their time tests wait for other processes: on two processors, eight testers take 18 minutes
# where five take 21. In the order of the folders, the longest files come first, and the small ones of
# unit tests fill what is left.
TESTERS := $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 8 ? 4 * n : n > 32 ? n : 32)))
PYTEST = $(BIN)/python -m pytest --numprocesses $(TESTERS) --dist loadfile --no-loadscope-reorder \
    -o tmp_path_retention_policy=failed
# Tests start the program thousands of times, and compiling its modules is a sixth of a start.
export PYTHONDONTWRITEBYTECODE :=
PROGRAM := $(abspath $(BIN)/vector-index-mcp)

.DEFAULT_GOAL := help
.PHONY: help demo check test everything quick-tests most-tests all-tests again soak rules lint screenshot quality learn question-map learn-chunks likelihood answers latency questions background speed remote scale load limits documents documents-speed documents-peer notes datasets remote-vectors bench clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

# Its searches start a service, which ends with it, unless one has been there before.
demo: $(VENV)/installed ## install, index PROJECT (this repository by default), ask it QUESTIONS, print the client entry
	$(PROGRAM) index "$(PROJECT)"
	@$(PROGRAM) ps | grep -qF "$(realpath $(PROJECT))" || \
	    trap '$(PROGRAM) stop "$(PROJECT)" >/dev/null 2>&1' EXIT; \
	for query in $(QUESTIONS); do \
	    printf '\n--- %s\n' "$$query"; \
	    $(PROGRAM) search "$(PROJECT)" "$$query" --top-k 2 || exit 1; \
	done
	@printf '\nTo use it in an MCP client, add this entry to its configuration:\n\n'
	@printf '{"mcpServers": {"%s": {"command": "%s", "args": ["%s"]}}}\n' \
	    "$(notdir $(abspath $(PROJECT)))" "$(PROGRAM)" "$(abspath $(PROJECT))"

# Temporary files lie in memory, where there is a file system for that which runs programs and has room
# for so many KB; the places of e2e/processes.py lie on the disk.
in_memory = $(shell d=/dev/shm; [ -w $$d ] && [ $$(df -kP $$d | awk 'END { print $$4 }') -gt $1 ] && \
    ! grep -q " $$d .*noexec" /proc/mounts && echo $$d)
# Without its cache, mypy takes one processor for 20 s; tests run on the other one meanwhile.
check: $(VENV)/installed-dev ## lint, types, unit and contract tests, for every change
	@$(MAKE) --no-print-directory --jobs 2 rules quick-tests

test: $(VENV)/installed-dev ## lint, types and every test but the long ones
	@$(MAKE) --no-print-directory --jobs 2 rules most-tests

everything: $(VENV)/installed-dev ## that and the long tests: loads, kills, attacks, full disks, browsers, real models
	@$(MAKE) --no-print-directory --jobs 2 rules all-tests

quick-tests: export PYTEST_DEBUG_TEMPROOT := $(call in_memory,1000000)
quick-tests: TESTERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) # they seldom wait
quick-tests: $(VENV)/compiled
	EXAMPLES=0.1 $(PYTEST) -m "not slow and not long" tests/unit tests/contract tests/test_*.py

most-tests all-tests: export PYTEST_DEBUG_TEMPROOT := $(call in_memory,8000000)
most-tests: $(VENV)/compiled
	$(PYTEST) -m "not long" --ignore tests/attacks --ignore tests/faults

# In one run: by themselves, the long tests take nearly as long as all, since most of them wait.
all-tests: $(VENV)/compiled
	$(PYTEST)

again: $(VENV)/installed-dev ## what failed in the last run, one test after the other
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

soak: export PYTEST_ADDOPTS := -o faulthandler_timeout=0
soak: $(VENV)/installed-dev ## hours of load, attacks, random changes, flipped bytes and kills; SEED=N for others
	LOAD_SECONDS=1800 $(BIN)/python -m pytest -s tests/faults/test_load.py
	EXAMPLES=30 $(BIN)/python -m pytest -s --timeout 36000 tests/unit \
	    tests/service/test_incremental_equals_fresh.py
	SAVES=200 $(BIN)/python -m pytest -s tests/service/test_crew.py
	ROUNDS=200 $(BIN)/python -m pytest -s tests/attacks/test_hostile_places.py
	STEPS=5000 $(BIN)/python -m pytest -s tests/attacks/test_differential.py
	FLIPS=500 $(BIN)/python -m pytest -s tests/attacks/test_flipped_bytes.py
	KILLS=300 $(BIN)/python -m pytest -s --timeout 36000 tests/faults/test_background_killed.py \
	    tests/faults/test_killed_at_any_moment.py
	KILLS=100 $(BIN)/python -m pytest -s --timeout 36000 tests/faults/test_notes_killed.py \
	    tests/faults/test_documents_killed.py tests/e2e/test_published_index.py
	KILLS=40 $(BIN)/python -m pytest -s --timeout 36000 tests/faults/test_many_services_killed.py
	STORM_SECONDS=600 $(BIN)/python -m pytest -s --timeout 36000 \
	    tests/service/test_index_on_object_storage.py

# Else every tester compiles all tests that have changed, 6 s of a processor each.
$(VENV)/compiled: $(VENV)/installed-dev $(shell find tests -name '*.py')
	-@$(BIN)/python -m pytest -p no:xdist --collect-only --quiet >/dev/null
	@touch $@

rules: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint: $(VENV)/installed-dev ## lint, format and type-check, and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

screenshot: $(VENV)/installed-dev ## show PROJECT to Chromium: docs/page.png and docs/terminal.png
	PYTHONPATH=tests:tests/e2e $(BIN)/python docs/screenshot.py "$(PROJECT)" docs

quality: $(VENV)/installed-dev ## is the right file found? 3,025 labelled queries; SEMBLE=PYTHON to compare
	$(BIN)/python benchmarks/quality.py --folder "$(BENCHMARKS)" --keep $(if $(SEMBLE),--semble $(SEMBLE))

question-map: $(VENV)/installed-dev ## which way do questions point? learns the map and judges it
	$(BIN)/python benchmarks/question_map.py --folder "$(BENCHMARKS)" --keep

learn: $(VENV)/installed-dev ## which file comes first? learns and judges the weights; needs what quality has kept
	$(BIN)/python benchmarks/learn.py --folder "$(BENCHMARKS)" --keep

learn-chunks: $(VENV)/installed-dev ## which chunk of a file comes first? needs what question-map has kept
	$(BIN)/python benchmarks/learn_chunks.py --folder "$(BENCHMARKS)" --keep

likelihood: $(VENV)/installed-dev ## how true are the scores? fits and judges them; needs what quality has kept
	$(BIN)/python benchmarks/likelihood.py --folder "$(BENCHMARKS)" --keep

answers: $(VENV)/installed-dev ## how long are answers, and do they hold the place? needs what quality has kept
	$(BIN)/python benchmarks/answers.py --folder "$(BENCHMARKS)" --keep

latency: $(VENV)/installed-dev ## how long does a query take? needs what quality has kept
	$(BIN)/python benchmarks/latency.py --folder "$(BENCHMARKS)" --keep

questions: $(VENV)/installed-dev ## ask ten questions of real sources; the results are kept
	$(BIN)/python benchmarks/questions.py --keep

background: $(VENV)/installed-dev ## measure what the background service costs; the results are kept
	$(BIN)/python benchmarks/background.py --keep

speed: $(VENV)/installed-dev ## how fast is everything? SEMBLE=PYTHON and PEERS="PYTHON ..." to compare
	$(BIN)/python benchmarks/speed.py --folder "$(BENCHMARKS)" --keep \
	    $(if $(SEMBLE),--semble $(SEMBLE)) $(foreach peer,$(PEERS),--peer $(peer))

remote: $(VENV)/installed-dev ## what does an index on object storage cost?
	$(BIN)/python benchmarks/remote.py --chunks 20000 --rtt 20

scale: $(VENV)/installed-dev ## how does the store behave as it grows? takes an hour
	$(BIN)/python benchmarks/scale.py --folder "$(BENCHMARKS)" --keep

load: $(VENV)/installed-dev ## half an hour of edits and queries: what grows, what fails?
	PYTHONPATH=tests:tests/e2e $(BIN)/python benchmarks/load.py --keep

limits: $(VENV)/installed-dev ## where does the time of a first index go, how far are the limits?
	$(BIN)/python benchmarks/limits.py --folder "$(BENCHMARKS)" --keep

documents: $(VENV)/installed-dev ## are the right documents found? COLLECTIONS="FOLDER ..." are labelled
	$(BIN)/python benchmarks/documents.py --folder "$(BENCHMARKS)" --keep $(COLLECTIONS)

notes: $(VENV)/installed-dev ## how fast are notes read, written and found, beside the way of git add and git commit?
	$(BIN)/python benchmarks/notes.py --folder "$(BENCHMARKS)" --keep

remote-vectors: $(VENV)/installed-dev ## how soon has a second machine the vectors that its team shares?
	$(BIN)/python benchmarks/remote_vectors.py --keep

datasets: $(VENV)/installed-dev ## how soon does a dataset of 200,000 vectors answer, beside FAISS?
	$(BIN)/python benchmarks/datasets.py --folder "$(BENCHMARKS)" --keep

documents-speed: $(VENV)/installed-dev ## how soon are 10,000 documents found? made of COLLECTIONS' words
	$(BIN)/python benchmarks/documents_speed.py --folder "$(BENCHMARKS)" --keep \
		--words $(firstword $(COLLECTIONS))

documents-peer: $(VENV)/installed-dev ## documents beside qmd: PEER="COMMAND" COLLECTIONS="FOLDER ..."
	$(BIN)/python benchmarks/documents_peer.py --folder "$(BENCHMARKS)" --keep \
		--peer "$(PEER)" $(COLLECTIONS)

bench: question-map quality learn learn-chunks likelihood answers latency questions background speed scale load limits ## measure everything

clean: ## remove the virtual environment
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: EXTRAS := offline
$(VENV)/installed-dev: EXTRAS := offline,formats,dev

# pip compiles on one processor what compileall does on all of them. A module that is written for a
# newer Python cannot be compiled, and is not needed.
$(VENV)/installed $(VENV)/installed-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[$(EXTRAS)]"
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib >/dev/null || true
	@touch $(VENV)/installed $@
