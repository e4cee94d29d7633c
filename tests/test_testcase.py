"""tf.test: the assertions of TestCase, and the gradient checker on unusual arguments."""

import subprocess
import sys

import numpy as np
import pytest

import gradtape as tf


class Example(tf.test.TestCase):
    def runTest(self):
        pass


@pytest.fixture
def case():
    return Example()


FINE = {
    "assertAllClose": ([1.0, 2.0], np.array([1.0, 2.0 + 1e-8])),
    "assertAllEqual": ([[1, 2]], np.array([[1, 2]])),
    "assertAllCloseAccordingToType": (np.float16([1.0]), np.float16([1.0005])),
    "assertNotAllClose": ([1.0], [2.0]),
    "assertNotAllEqual": ([1], [2]),
    "assertNear": (1.0, 1.05, 0.1),
    "assertArrayNear": ([1.0, 2.0], [1.05, 2.0], 0.1),
    "assertAllGreater": ([2.0], 1.0),
    "assertAllLessEqual": ([1.0], 1.0),
    "assertAllInRange": ([1.0, 2.0], 1.0, 2.0),
    "assertAllInSet": ([1, 2], (1, 2, 3)),
    "assertLen": ([1, 2], 2),
    "assertNotEmpty": ([1],),
}
WRONG = {
    "assertAllClose": ([1.0, 2.0], [1.0, 2.1]),
    "assertAllEqual": ([1, 2], [[1, 2]]),
    "assertAllCloseAccordingToType": (np.float64([1.0]), np.float64([1.0005])),
    "assertNotAllClose": ([1.0], [1.0]),
    "assertNotAllEqual": ([1], [1]),
    "assertNear": (1.0, 1.2, 0.1),
    "assertArrayNear": ([1.0, 2.0], [1.2, 2.0], 0.1),
    "assertAllGreater": ([1.0], 1.0),
    "assertAllLessEqual": ([1.1], 1.0),
    "assertAllInRange": ([1.0, 2.0], 1.0, 2.0, True),
    "assertAllInSet": ([1, 4], (1, 2, 3)),
    "assertLen": ([1, 2], 3),
    "assertNotEmpty": ([],),
}


@pytest.mark.parametrize("name", FINE)
def test_assertions(case, name):
    def tensor(value):
        return tf.constant(value) if isinstance(value, (list, np.ndarray)) and "Len" not in name else value

    getattr(case, name)(*FINE[name])
    if name not in ("assertArrayNear", "assertNotEmpty"):
        getattr(case, name)(tensor(FINE[name][0]), *FINE[name][1:])
    with pytest.raises(AssertionError):
        getattr(case, name)(*WRONG[name])


def test_structures(case):
    case.assertAllClose({"a": tf.ones([2]), "b": [1.0]}, {"b": np.ones(1), "a": np.ones(2)})
    case.assertAllClose([tf.ones([2]), tf.ones([3])], [np.ones(2), np.ones(3)])
    with pytest.raises(AssertionError):
        case.assertAllClose({"a": [1.0]}, {"b": [1.0]})
    assert case.evaluate({"a": tf.constant(1.5), "b": 2}) == {"a": 1.5, "b": 2}


def test_errors(case):
    with case.assertRaisesOpError("[Ss]hapes"):
        tf.ones([2]) + tf.ones([3])
    with pytest.raises(AssertionError), case.assertRaisesWithPredicateMatch(ValueError, "x"):
        pass
    with case.session():
        case.assertShapeEqual(np.ones([2, 3]), tf.ones([2, 3]))
        case.assertDTypeEqual(tf.ones([2]), tf.float32)


def test_compute_gradient_of_complex_numbers():
    theoretical, numeric = tf.test.compute_gradient(lambda z: z * z, [np.array([1 + 2j])])
    assert theoretical[0].shape == (2, 2)
    np.testing.assert_allclose(numeric[0], [[2, -4], [4, 2]], rtol=1e-6)
    np.testing.assert_allclose(theoretical[0], numeric[0], rtol=1e-6)


def test_compute_gradient_of_rows_and_of_nothing():
    theoretical, numeric = tf.test.compute_gradient(lambda x: tf.gather(x, [1, 1]), [np.array([1.0, 2.0])])
    np.testing.assert_allclose(theoretical[0], [[0, 1], [0, 1]])
    np.testing.assert_allclose(numeric[0], theoretical[0])
    theoretical, numeric = tf.test.compute_gradient(tf.square, [np.zeros([0])])
    assert theoretical[0].shape == numeric[0].shape == (0, 0)


def test_the_build():
    assert (
        not tf.test.is_gpu_available()
        and not tf.test.is_built_with_cuda()
        and tf.test.gpu_device_name() == ""
    )


def test_unittest_is_not_imported_with_the_package():
    code = (
        "import sys, numpy; sys.modules.pop('unittest', 0); import gradtape; print('unittest' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
