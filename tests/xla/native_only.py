"""What `make xla-tests` leaves out, with a reason each: tests of the native engine itself. A plugin of pytest.

    GRADTAPE_ENGINE=xla pytest -p tests.xla.native_only tests/programs tests/semantics ...

A name stands for all tests whose ids begin with it. One that fits no test of its file is an error.
"""

import pytest

NATIVE_ONLY = {
    "tests/test_function.py::test_check_passes_on_right_programs_and_names_the_op_that_differs": "breaks a native program",
    "tests/test_recompute_grad.py::test_24_layers_in_a_third_of_the_memory": "counts the bytes of native tensors",
    "tests/test_recompute_grad.py::test_a_barrier_is_no_step_and_passes": "looks at the steps of a native program",
}


def reason(node):
    """Why a test is left out, or None."""
    return next((why for name, why in NATIVE_ONLY.items() if node.startswith(name)), None)


def pytest_collection_modifyitems(items):
    files = {item.nodeid.split("::")[0] for item in items}
    for name in NATIVE_ONLY:
        if name.split("::")[0] in files and not any(item.nodeid.startswith(name) for item in items):
            raise pytest.UsageError(f"tests/xla/native_only.py: there is no test {name}")
    for item in items:
        if why := reason(item.nodeid):
            item.add_marker(pytest.mark.skip(reason=f"of the native engine: {why}"))
