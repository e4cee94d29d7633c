"""tf.test: the assertions of TestCase, and the gradient checker on unusual arguments."""

import collections
import os
import random
import subprocess
import sys
import unittest

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
    "assertNDArrayNear": (np.array([1.0, 2.0]), np.array([1.0, 2.001]), 0.01),
    "assertDictEqual": ({"a": np.ones(2)}, {"a": np.ones(2)}),
    "assertBetween": (2, 1, 3),
    "assertSameElements": ([1, 2, 2], [2, 1]),
    "assertContainsSubset": ([1], [1, 2]),
    "assertNoCommonElements": ([1], [2]),
    "assertContainsSubsequence": ([1, 2, 3], [1, 3]),
    "assertContainsInOrder": (["a", "b"], "xaxb"),
    "assertStartsWith": ("abc", "ab"),
    "assertEndsWith": ("abc", "bc"),
    "assertRegexMatch": ("abc", ["x", "b."]),
    "assertSequenceAlmostEqual": ([1.0], [1.0 + 1e-9]),
    "assertTotallyOrdered": ([1, 1], [2]),
    "assertSameStructure": ({"a": [1, 2]}, {"a": [1, 2]}),
    "assertDeviceEqual": ("/cpu:0", "/job:localhost/replica:0/task:0/device:CPU:0"),
    "assertProtoEquals": ("dim { size: 2 }", tf.TensorShape([2]).as_proto()),
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
    "assertNDArrayNear": (np.array([1.0, 2.0]), np.array([1.0, 2.1]), 0.01),
    "assertDictEqual": ({"a": np.ones(2)}, {"a": np.zeros(2)}),
    "assertBetween": (4, 1, 3),
    "assertSameElements": ([1, 2, 3], [2, 1]),
    "assertContainsSubset": ([3], [1, 2]),
    "assertNoCommonElements": ([1, 2], [2]),
    "assertContainsSubsequence": ([1, 2, 3], [3, 1]),
    "assertContainsInOrder": (["b", "a"], "xaxb"),
    "assertStartsWith": ("abc", "bc"),
    "assertEndsWith": ("abc", "ab"),
    "assertRegexMatch": ("abc", ["x"]),
    "assertSequenceAlmostEqual": ([1.0], [1.1]),
    "assertTotallyOrdered": ([1, 2], [2]),
    "assertSameStructure": ({"a": [1, 2]}, {"a": [1, 3]}),
    "assertDeviceEqual": ("/cpu:0", "/gpu:0"),
    "assertProtoEquals": ("dim { size: 3 }", tf.TensorShape([2]).as_proto()),
}


@pytest.mark.parametrize("name", FINE)
def test_assertions(case, name):
    getattr(case, name)(*FINE[name])
    if name.startswith(("assertAll", "assertNotAll", "assertNDArray")):
        getattr(case, name)(tf.constant(FINE[name][0]), *FINE[name][1:])
    with pytest.raises(AssertionError):
        getattr(case, name)(*WRONG[name])


def test_structures(case):
    case.assertAllClose({"a": tf.ones([2]), "b": [1.0]}, {"b": np.ones(1), "a": np.ones(2)})
    case.assertAllClose([tf.ones([2]), tf.ones([3])], [np.ones(2), np.ones(3)])
    pair = collections.namedtuple("pair", "a b")
    case.assertAllClose(pair(1.0, [2.0, {"c": 3.0}]), {"a": 1.0, "b": [2.0, {"c": 3.0}]})
    with pytest.raises(AssertionError, match=r"a\[b\]\[1\]\[c\] is different"):
        case.assertAllClose(pair(1.0, [2.0, {"c": 3.0}]), {"a": 1.0, "b": [2.0, {"c": 4.0}]})
    with pytest.raises(AssertionError, match="mismatched keys"):
        case.assertAllClose({"a": [1.0]}, {"b": [1.0]})
    with pytest.raises(ValueError, match="dict to non-dict"):
        case.assertAllClose({"a": [1.0]}, [1.0])
    assert case.evaluate({"a": tf.constant(1.5), "b": None}) == {"a": 1.5, "b": None}
    assert case.evaluate([lambda: tf.constant(2), tf.Variable(3)]) == [2, 3]
    with pytest.raises(ValueError, match="Unsupported type 'int'"):
        case.evaluate({"a": 2})


def test_numbers_of_bfloat16(case):
    x = tf.cast([1.0, float("nan")], tf.bfloat16)
    case.assertAllEqual(x, x)
    case.assertAllClose(x, [1.0, np.nan])
    case.assertAllCloseAccordingToType(tf.cast([1.0], tf.bfloat16), [1.009])
    with pytest.raises(AssertionError):
        case.assertAllEqual(x, tf.cast([1.0, 2.0], tf.bfloat16))


def test_assertions_in_functions(case):
    @tf.function
    def f(x):
        case.assertAllClose(x * 2.0, [2.0, 4.0])
        case.assertAllGreater(x, 0.0)
        return x

    f(tf.constant([1.0, 2.0]))
    with pytest.raises((AssertionError, tf.errors.OpError), match="Mismatched value"):
        f(tf.constant([1.0, 3.0]))


def test_seeds_are_those_of_tensorflows_tests(case):
    """The numbers are those of TensorFlow 2.21 in a test."""
    for _ in range(2):
        case.setUp()
        np.testing.assert_array_equal(
            tf.random.uniform([2]), np.float32([0.5836374759674072, 0.2972298860549927])
        )
        assert np.random.rand() == 0.18463433217903202 and random.random() == 0.3499765785632496


def test_captured_output(case):
    with case.captureWritesToStream(sys.__stderr__) as printed:
        os.write(sys.__stderr__.fileno(), b"from C\n")
        print("hello", file=sys.__stderr__, flush=True)
    assert printed.contents() == "from C\nhello\n"


def test_threads(case):
    done = []
    thread = case.checkedThread(done.append, (1,))
    thread.start()
    thread.join()
    assert done == [1] and not thread.is_alive()
    thread = case.checkedThread(lambda: 1 / 0)
    thread.start()
    with pytest.raises(AssertionError, match="Error in checkedThread: division by zero"):
        thread.join()


def test_temporary_files(case):
    with open(case.create_tempfile("a/b", content="x")) as file:
        assert file.read() == "x"
    assert os.path.isdir(case.create_tempdir("c")) and case.get_temp_dir() == case.get_temp_dir()
    case.doCleanups()
    assert not os.path.exists(case._folder)


def test_errors(case):
    with case.assertRaisesOpError("[Ss]hapes"):
        tf.ones([2]) + tf.ones([3])
    with pytest.raises(AssertionError), case.assertRaisesWithPredicateMatch(ValueError, "x"):
        pass
    with case.assertRaisesIncompatibleShapesError():
        tf.ones([2]) + tf.ones([3])
    with case.assertRaisesWithLiteralMatch(ValueError, "a (b"):
        raise ValueError("a (b")
    with (
        pytest.raises(AssertionError, match="does not match"),
        case.assertRaisesWithLiteralMatch(ValueError, "a"),
    ):
        raise ValueError("ab")
    with pytest.raises(TypeError, match="must be a Numpy ndarray"):
        case.assertShapeEqual([1], tf.ones([1]))
    with case.cached_session() as session:
        assert session.run([tf.constant(1)]) == [1]
    with case.test_session(use_gpu=True), case.session():
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


def test_unsupported_functions():
    with pytest.raises(NotImplementedError, match="no servers"):
        tf.test.create_local_cluster(1, 1)
    with pytest.raises(TypeError, match="Expected tf.GraphDef"):
        tf.test.assert_equal_graph_def(1, 2)
    with pytest.raises(AssertionError, match="unsupported type int32 of argument 0"):
        tf.test.compute_gradient(lambda x: x, [tf.constant(1)])


def test_the_session_is_no_test():
    class Case(tf.test.TestCase):
        def test_one(self):
            pass

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, len(result.skipped), result.failures, result.errors) == (2, 1, [], [])
