# Two commands on a fresh machine: `make demo` and `make test`. Each makes .venv itself.
.PHONY: demo test test-long lint format bench docs clean

PYTEST = .venv/bin/python -m pytest

demo:
	@scripts/venv transformers
	@.venv/bin/benchcheck demo demo-study

# The fast tier: everything but the tests marked long. Two processes; coverage is held by `make test-long`.
test:
	@scripts/venv transformers,server,ray,check,s3,dev
	$(PYTEST) -n 2 -m "not long"

# All tests, real vLLM on the CPU and Ray among them, with coverage: pure modules 100 %, the rest 90 %.
test-long:
	@scripts/venv transformers,server,ray,check,s3,dev
	@scripts/vllm-venv
	rm -f .coverage .coverage.*
	$(PYTEST) -n 2 --cov --cov-report=
	.venv/bin/python -m coverage json -q -o .coverage.json
	.venv/bin/python scripts/coverage_gate.py .coverage.json

lint:
	@scripts/venv transformers,server,ray,check,s3,dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format:
	@scripts/venv transformers,server,ray,check,s3,dev
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# Speed figures, as ratios in one run; docs/performance.md keeps them.
bench:
	@scripts/venv transformers,server,ray,check,s3,dev
	.venv/bin/python bench/plan.py
	.venv/bin/python bench/frames.py
	.venv/bin/python bench/packed_forward.py
	.venv/bin/pip install --quiet httpx httptools orjson
	.venv/bin/python bench/http_client.py
	.venv/bin/python bench/determinism.py

# The documentation is Markdown; this runs every command in it and follows every link.
docs:
	@scripts/venv transformers,server,ray,check,s3,dev
	$(PYTEST) -n 2 tests/docs

clean:
	rm -rf .venv .venv-vllm demo-study .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
