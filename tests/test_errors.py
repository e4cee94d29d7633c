"""`gradtape.errors`: TensorFlow's exception classes, their codes and constructors."""

import pickle

import pytest

from gradtape import errors

CODES = {
    "CancelledError": 1,
    "UnknownError": 2,
    "InvalidArgumentError": 3,
    "DeadlineExceededError": 4,
    "NotFoundError": 5,
    "AlreadyExistsError": 6,
    "PermissionDeniedError": 7,
    "ResourceExhaustedError": 8,
    "FailedPreconditionError": 9,
    "AbortedError": 10,
    "OutOfRangeError": 11,
    "UnimplementedError": 12,
    "InternalError": 13,
    "UnavailableError": 14,
    "DataLossError": 15,
    "UnauthenticatedError": 16,
}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_class(name, code):
    cls = getattr(errors, name)
    assert issubclass(cls, errors.OpError) and issubclass(cls, Exception)
    for error in (cls("text"), cls(None, None, "text"), cls(message="text")):
        assert (error.message, str(error), error.error_code) == ("text", "text", code)
        assert error.op is None and error.node_def is None
        assert error.experimental_payloads == {}
        assert repr(error) == f"{name}('text')"


def test_every_code_has_a_constant():
    constants = {v for k, v in vars(errors).items() if k.isupper() and isinstance(v, int)}
    assert constants == {errors.OK, *CODES.values()} == set(range(17))


def test_node_def_and_op_are_kept():
    error = errors.InvalidArgumentError("node", "op", "text")
    assert (error.node_def, error.op, error.message) == ("node", "op", "text")


def test_op_error_takes_its_code():
    assert errors.OpError(None, None, "m", errors.NOT_FOUND).error_code == errors.NOT_FOUND
    assert errors.OpError("m").error_code == errors.UNKNOWN


def test_extra_arguments_do_not_change_the_code():
    assert errors.NotFoundError(None, None, "m", "payload").error_code == errors.NOT_FOUND


@pytest.mark.parametrize("cls", [errors.OpError, errors.InvalidArgumentError])
def test_pickle(cls):
    error = pickle.loads(pickle.dumps(cls("node", "op", "text")))
    assert type(error) is cls
    assert (error.node_def, error.op, error.message) == ("node", "op", "text")
    assert error.error_code == cls("text").error_code


def test_no_message():
    assert str(errors.InternalError()) == ""


def test_graph_error_is_a_type_error():
    assert issubclass(errors.OperatorNotAllowedInGraphError, TypeError)
    assert not issubclass(errors.OperatorNotAllowedInGraphError, errors.OpError)


def test_payloads():
    payloads = {"kind": b"value"}
    assert errors.InvalidArgumentError(None, None, "text", payloads).experimental_payloads == payloads
    assert errors.OpError(None, None, "text", 3, payloads).experimental_payloads == payloads
    assert errors.AbortedError(None, None, "text").experimental_payloads == {}
