"""WAV files, with values TensorFlow gave."""

import pytest

import gradtape as tf

WAV = tf.audio.encode_wav([[0.0, 0.5], [-1.0, 1.0], [2.0, -2.0]], 44100)


def test_bytes():
    assert WAV.numpy() == (
        b"RIFF0\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00D\xac\x00\x00\x10\xb1\x02\x00\x04\x00\x10\x00data\x0c"
        b"\x00\x00\x00\x00\x00\x00@\x00\x80\xff\x7f\xff\x7f\x00\x80"
    )


def test_samples():
    audio, rate = tf.audio.decode_wav(WAV)
    top = 32767 / 32768
    assert audio.numpy().tolist() == [[0.0, 0.5], [-1.0, top], [top, -1.0]] and int(rate) == 44100
    assert tf.audio.decode_wav(WAV, 3, 4).audio.numpy().tolist()[2:] == [[top, -1.0, -1.0], [0.0, 0.0, 0.0]]
    f = tf.function(lambda file: tf.audio.decode_wav(file, 1)[0])
    assert f(WAV).numpy().tolist() == [[0.0], [-1.0], [top]]
    assert f.get_concrete_function(tf.TensorSpec([], tf.string)).output_shapes.as_list() == [None, 1]


@pytest.mark.parametrize(
    "data, words", [(b"junk", "found junk"), (WAV.numpy()[:20], "too short"), (WAV.numpy()[:-1], "too short")]
)
def test_damaged(data, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        tf.audio.decode_wav(data)


def test_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="2-dimensional"):
        tf.audio.encode_wav([0.0, 1.0], 44100)
    with pytest.raises(tf.errors.InvalidArgumentError, match="sample_rate"):
        tf.audio.encode_wav([[0.5]], 0)
