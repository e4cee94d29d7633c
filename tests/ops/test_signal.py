"""`tf.signal`: transforms against NumPy's or their definitions, windows and spectra against TensorFlow's
numbers (2.21), gradients through it all."""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.ops import fft_of, irfft_of
from gradtape.errors import InvalidArgumentError

RNG = np.random.default_rng(2)

# Small primes and their products, primes that make a convolution, long ones that are cut in two.
LENGTHS = [
    *range(1, 9),
    11,
    12,
    13,
    16,
    17,
    26,
    31,
    49,
    64,
    77,
    97,
    100,
    128,
    144,
    251,
    360,
    1000,
    1024,
    4099,
    8192,
]


def normal(*shape, complex_=False):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if complex_ else x


def near(actual, expected, tolerance=1e-13):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    size = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * size)


# ---- Fourier transforms ----


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("lines", [1, 3, 19])
def test_every_length(n, lines):
    x = normal(lines, n, complex_=True)
    near(tf.signal.fft(tf.constant(x)), np.fft.fft(x))
    near(tf.signal.ifft(tf.constant(x)), np.fft.ifft(x))
    near(fft_of(np.ascontiguousarray(x.T), [0]), np.fft.fft(x).T)
    near(tf.signal.rfft(tf.constant(x.real)), np.fft.rfft(x.real))
    half = x[:, : n // 2 + 1]
    near(tf.signal.irfft(tf.constant(half), [n]), np.fft.irfft(half, n))
    single = x.astype(np.complex64)
    near(tf.signal.fft(single), np.fft.fft(x), 2e-6)
    near(tf.signal.rfft(single.real), np.fft.rfft(x.real), 2e-6)


@pytest.mark.parametrize("rank", [2, 3])
def test_more_dimensions(rank):
    x = normal(2, 3, 5, 8, complex_=True)
    axes = tuple(range(-rank, 0))
    d = f"{rank}d"
    near(getattr(tf.signal, "fft" + d)(tf.constant(x)), np.fft.fftn(x, axes=axes))
    near(getattr(tf.signal, "ifft" + d)(tf.constant(x)), np.fft.ifftn(x, axes=axes))
    near(getattr(tf.signal, "rfft" + d)(tf.constant(x.real)), np.fft.rfftn(x.real, axes=axes))
    near(getattr(tf.signal, "irfft" + d)(tf.constant(x)), np.fft.irfftn(x, axes=axes))
    for sizes in ([4, 5, 6][:rank], [2, 9, 11][:rank]):
        near(
            getattr(tf.signal, "rfft" + d)(tf.constant(x.real), sizes), np.fft.rfftn(x.real, sizes, axes=axes)
        )
        near(getattr(tf.signal, "irfft" + d)(tf.constant(x), sizes), np.fft.irfftn(x, sizes, axes=axes))


@pytest.mark.parametrize("axes", [None, [0], [-1, 0], [2, 1]])
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_any_axes(axes, norm):
    x = normal(3, 4, 6, complex_=True)
    near(tf.signal.fftnd(tf.constant(x), axes=axes, norm=norm), np.fft.fftn(x, axes=axes, norm=norm))
    near(tf.signal.ifftnd(tf.constant(x), axes=axes, norm=norm), np.fft.ifftn(x, axes=axes, norm=norm))
    near(
        tf.signal.rfftnd(tf.constant(x.real), axes=axes, norm=norm),
        np.fft.rfftn(x.real, axes=axes, norm=norm),
    )
    near(tf.signal.irfftnd(tf.constant(x), axes=axes, norm=norm), np.fft.irfftn(x, axes=axes, norm=norm))


def test_lengths_of_any_axes():
    x = normal(3, 4, complex_=True)
    near(tf.signal.fftnd(tf.constant(x), [5], axes=[0]), np.fft.fftn(x, [5], axes=[0]))
    near(tf.signal.fftnd(tf.constant(x), [2, 6]), np.fft.fftn(x, [2, 6], axes=[0, 1]))
    near(tf.signal.irfftnd(tf.constant(x), [3, 5]), np.fft.irfftn(x, [3, 5], axes=[0, 1]))


def test_lines_do_not_touch_each_other():
    """Many lines are transformed side by side; NaN in one does not affect the others."""
    x = normal(40, 24, complex_=True)
    x[7] = np.nan
    out = tf.signal.fft(tf.constant(x)).numpy()
    assert np.isnan(out[7]).all() and not np.isnan(np.delete(out, 7, 0)).any()
    y = tf.signal.rfft(tf.constant(x.real)).numpy()
    assert not np.isnan(np.delete(y, 7, 0)).any()


def test_element_types():
    x = normal(2, 4)
    assert tf.signal.fft(x).dtype is tf.complex64  # arrays and lists are converted to TensorFlow's type
    assert tf.signal.rfft(x).dtype is tf.complex64
    assert tf.signal.rfft(tf.constant(x)).dtype is tf.complex128
    assert tf.signal.irfft(tf.constant(x.astype(complex))).dtype is tf.float64
    with pytest.raises(InvalidArgumentError, match="not defined for float64"):
        tf.signal.fft(tf.constant(x))
    with pytest.raises(ValueError, match="IRFFT requires"):
        tf.signal.irfft(tf.constant(x))
    with pytest.raises(ValueError, match="RFFT requires"):
        tf.signal.rfft(tf.constant(x.astype(complex)))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tf.signal.fft(np.complex64(1)), InvalidArgumentError, "rank of at least 1 but got"),
        (lambda: tf.signal.fft2d(np.ones(3, np.complex64)), InvalidArgumentError, "rank of at least 2"),
        (lambda: tf.signal.rfft3d(np.ones((2, 3))), ValueError, "rank at least 3"),
        (lambda: tf.signal.rfft(np.ones(3), [3, 3]), InvalidArgumentError, "must have shape"),
        (lambda: tf.signal.rfft(np.ones(3), [0]), InvalidArgumentError, "must be positive"),
        (lambda: tf.signal.irfft(np.ones((2, 1), np.complex64)), InvalidArgumentError, "must be positive"),
        (lambda: tf.signal.fftnd(np.ones(3, complex), norm="x"), ValueError, "norm must be"),
        (lambda: tf.signal.fftnd(np.ones((2, 3), complex), axes=[1, 1]), InvalidArgumentError, "different"),
    ],
)
def test_wrong_transforms(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_shifts():
    for n in (4, 5):
        x = np.arange(n * 3).reshape(n, 3)
        for axes in (None, 0, [0, 1]):
            near(tf.signal.fftshift(x, axes), np.fft.fftshift(x, axes))
            near(tf.signal.ifftshift(x, axes), np.fft.ifftshift(x, axes))


def test_transforms_in_a_function_with_gradients():
    """A low-pass filter: the same in a compiled program, and its gradient is the filter again."""
    mask = np.r_[np.ones(5), np.zeros(12)]

    def filtered(x):
        return tf.signal.irfft(tf.signal.rfft(x) * mask, [32])

    x = tf.constant(normal(3, 32))
    near(tf.function(filtered)(x), filtered(x))
    w = normal(3, 32)

    def loss(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(filtered(x) * w)
        return tape.gradient(y, x)

    near(loss(x), filtered(tf.constant(w)))
    near(tf.function(loss)(x), filtered(tf.constant(w)))


def test_jacobian_and_vectorized_map():
    x = tf.constant(normal(6, complex_=True))
    near(tf.vectorized_map(tf.signal.fft, tf.constant(np.eye(6, dtype=complex))), np.fft.fft(np.eye(6)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.real(tf.signal.fft(x))
    assert tape.jacobian(y, x).shape == (6, 6)
    near(tf.vectorized_map(lambda r: tf.signal.rfft(r), tf.constant(normal(3, 8))).shape, [3, 5])


def test_gradients_of_cut_and_filled_signals():
    """These calls fail in TensorFlow."""
    for n in (4, 6, 9):
        x = tf.constant(normal(2, 6))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.abs(tf.signal.rfft(x, [n])) ** 2)
        size = np.abs(np.fft.rfft(x.numpy()[:, :n], n)) ** 2
        near(y, size.sum())
        assert tape.gradient(y, x).shape == (2, 6)


# ---- cosine transforms ----


def cosine(x, kind):
    n = len(x)
    k, i = np.arange(n)[:, None], np.arange(n)
    if kind == 1:
        return x[0] + (-1.0) ** k[:, 0] * x[-1] + 2 * np.cos(np.pi * k * i[1:-1] / (n - 1)) @ x[1:-1]
    if kind == 2:
        return 2 * np.cos(np.pi * k * (2 * i + 1) / (2 * n)) @ x
    if kind == 3:
        return x[0] + 2 * np.cos(np.pi * i[1:] * (2 * k + 1) / (2 * n)) @ x[1:]
    return 2 * np.cos(np.pi * (2 * i + 1) * (2 * k + 1) / (4 * n)) @ x


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 30])
def test_cosine_transforms(kind, n):
    if kind == 1 and n == 1:
        return
    x = normal(2, n)
    expected = np.stack([cosine(row, kind) for row in x])
    near(tf.signal.dct(tf.constant(x), type=kind), expected)
    back = tf.signal.idct(tf.constant(expected), type=kind).numpy()
    near(back / (2 * (n - 1) if kind == 1 else 2 * n), x)
    if kind > 1:
        y = tf.signal.dct(tf.constant(x), type=kind, norm="ortho").numpy()
        near(np.sum(y * y), np.sum(x * x))
        near(tf.signal.idct(tf.constant(y), type=kind, norm="ortho"), x)


def test_cosine_transforms_of_other_lengths():
    x = normal(2, 6)
    near(tf.signal.dct(tf.constant(x), n=4), np.stack([cosine(r[:4], 2) for r in x]))
    near(tf.signal.dct(tf.constant(x), n=9), np.stack([cosine(np.r_[r, 0, 0, 0], 2) for r in x]))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"type": 5}, ValueError, "Types I, II, III and IV"), ({"axis": 0}, NotImplementedError, "axis must be -1"),
        ({"norm": "x"}, ValueError, "Unknown normalization"), ({"n": 0}, ValueError, "positive integer"),
        ({"type": 1, "norm": "ortho"}, ValueError, "not supported for the Type-I"),
        ({"type": 1, "n": 1}, ValueError, "greater than one"),
    ],
)  # fmt: skip
def test_wrong_cosine_transforms(arguments, error, words):
    with pytest.raises(error, match=words):
        tf.signal.dct(np.ones((2, 3)), **arguments)


# ---- frames ----


def test_frames():
    x = np.arange(7)
    assert tf.signal.frame(x, 3, 2).numpy().tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    filled = tf.signal.frame(x, 3, 3, pad_end=True, pad_value=9)
    assert filled.numpy().tolist() == [[0, 1, 2], [3, 4, 5], [6, 9, 9]]
    assert tf.signal.frame(x[:3], 5, 2).shape == (0, 5)
    assert tf.signal.frame(x[:3], 5, 2, pad_end=True).numpy().tolist() == [[0, 1, 2, 0, 0], [2, 0, 0, 0, 0]]
    y = np.arange(24).reshape(2, 6, 2)
    out = tf.signal.frame(y, 2, 3, axis=1).numpy()
    assert out.shape == (2, 2, 2, 2) and np.array_equal(out[:, 1], y[:, 3:5])
    with pytest.raises(ValueError, match="rank at least 1"):
        tf.signal.frame(3.0, 2, 1)
    with pytest.raises(InvalidArgumentError, match="frame_step must be positive"):
        tf.signal.frame(x, 2, 0)


def test_overlap_and_add():
    assert tf.signal.overlap_and_add(np.ones((3, 4)), 2).numpy().tolist() == [1, 1, 2, 2, 2, 2, 1, 1]
    assert tf.signal.overlap_and_add(np.ones((3, 2), int), 3).numpy().tolist() == [1, 1, 0, 1, 1, 0, 1, 1]
    with pytest.raises(ValueError, match="rank at least 2"):
        tf.signal.overlap_and_add(np.ones(3), 2)
    with pytest.raises(ValueError, match="must be an integer"):
        tf.signal.overlap_and_add(np.ones((3, 4)), 2.0)


# ---- windows, with TensorFlow's numbers ----


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (lambda: tf.signal.hann_window(5), [0, 0.5, 1, 0.5, 0]), (lambda: tf.signal.hann_window(4), [0, 0.5, 1, 0.5]),
        (lambda: tf.signal.hann_window(4, periodic=False), [0, 0.75, 0.75, 0]), (lambda: tf.signal.hann_window(1), [1]),
        (lambda: tf.signal.hamming_window(4), [0.08, 0.54, 1, 0.54]), (lambda: tf.signal.hann_window(0), []),
        (lambda: tf.signal.kaiser_window(5), [5.2773448e-05, 0.21567266, 1, 0.21567266, 5.2773448e-05]),
        (lambda: tf.signal.kaiser_window(4, beta=3.0), [0.20488471, 0.8712419, 0.8712419, 0.20488471]),
        (
            lambda: tf.signal.kaiser_bessel_derived_window(6),
            [0.00713103, 0.70710677, 0.99997455, 0.99997455, 0.70710677, 0.00713103],
        ),
        (lambda: tf.signal.vorbis_window(6), [0.10502934, 0.70710677, 0.9944691, 0.9944691, 0.70710677, 0.10502925]),
    ],
)  # fmt: skip
def test_windows(window, expected):
    out = window()
    assert out.dtype is tf.float32
    np.testing.assert_allclose(out, expected, atol=2e-7)


def test_windows_of_other_types():
    assert tf.signal.hann_window(tf.constant(4), dtype=tf.float64).dtype is tf.float64
    assert tf.signal.hann_window(4, dtype=tf.float16).dtype is tf.float16
    with pytest.raises(ValueError, match="floating point"):
        tf.signal.hann_window(4, dtype=tf.int32)
    with pytest.raises(ValueError, match="rank 0"):
        tf.signal.hann_window([4])


# ---- short-time spectra ----

SIGNAL = np.sin(np.arange(60.0)).reshape(2, 30)


def test_stft_is_the_transform_of_windowed_frames():
    out = tf.signal.stft(tf.constant(SIGNAL), 8, 4)
    assert out.shape == (2, 6, 5) and out.dtype is tf.complex128
    window = tf.signal.hann_window(8, dtype=tf.float64).numpy()
    near(out[1, 2], np.fft.rfft(SIGNAL[1, 8:16] * window))
    other = tf.signal.stft(tf.constant(SIGNAL), 7, 3, fft_length=16, pad_end=True, window_fn=None)
    assert other.shape == (2, 10, 9)


@pytest.mark.parametrize(("length", "step"), [(8, 4), (8, 2), (7, 3)])
def test_inverse_stft(length, step):
    stft = tf.signal.stft(tf.constant(SIGNAL), length, step)
    back = tf.signal.inverse_stft(
        stft, length, step, window_fn=tf.signal.inverse_stft_window_fn(step)
    ).numpy()
    inner = slice(length, 30 - 2 * length)
    np.testing.assert_allclose(back[:, inner], SIGNAL[:, inner], atol=1e-12)


def test_stft_learns():
    """Gradients through a spectrogram find the frequency of a tone, in a compiled step."""
    t = tf.constant(np.arange(256) / 256.0, tf.float32)

    def spectrum(f):
        return tf.abs(tf.signal.stft(tf.sin(2 * np.pi * f * t), 64, 32))

    goal = spectrum(tf.constant(20.0))
    f = tf.Variable(18.5)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((spectrum(f) - goal) ** 2)
        f.assign_sub(0.05 * tape.gradient(loss, f))
        return loss

    first = step().numpy()
    for _ in range(60):
        last = step().numpy()
    assert last < 0.05 * first


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("window", [tf.signal.vorbis_window, tf.signal.kaiser_bessel_derived_window, None])
def test_mdct_and_back(norm, window):
    mdct = tf.signal.mdct(tf.constant(SIGNAL), 8, window_fn=window, norm=norm)
    back = tf.signal.inverse_mdct(mdct, window_fn=window, norm=norm).numpy()
    assert mdct.shape == (2, 6, 4)
    np.testing.assert_allclose(back[:, 4:24], SIGNAL[:, 4:24], atol=1e-12)


def test_mdct_has_tensorflows_numbers():
    out = tf.signal.mdct(np.sin(np.arange(20.0)).astype(np.float32), 8)
    np.testing.assert_allclose(out[0], [2.793247, 2.0824304, -1.0580952, 0.1605889], atol=1e-5)
    with pytest.raises(ValueError, match="multiple of 4"):
        tf.signal.mdct(SIGNAL, 6)


# ---- mel ----


def test_mel_weights():
    w = tf.signal.linear_to_mel_weight_matrix(3, 9)
    expected = [[0, 0, 0], [0.8834769, 0, 0], [0.29526266, 0.70473737, 0], [0, 0.6873362, 0.3126638]]
    assert w.shape == (9, 3) and w.dtype is tf.float32
    np.testing.assert_allclose(w[:4], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_mel_bins": 0}, "num_mel_bins must be positive"), ({"sample_rate": -1}, "sample_rate must be positive"),
        ({"lower_edge_hertz": -1.0}, "non-negative"), ({"lower_edge_hertz": 5000}, "lower_edge_hertz 5000.0 >="),
        ({"upper_edge_hertz": 5000}, "Nyquist"), ({"dtype": tf.int32}, "floating point"),
    ],
)  # fmt: skip
def test_wrong_mel_weights(arguments, words):
    with pytest.raises(ValueError, match=words):
        tf.signal.linear_to_mel_weight_matrix(**arguments)


def test_mfccs():
    x = np.arange(8.0).reshape(2, 4).astype(np.float32)
    expected = [[4.2426405, -2.2304425, 0, -0.15851261], [15.556349, -2.2304425, 0, -0.15851226]]
    np.testing.assert_allclose(tf.signal.mfccs_from_log_mel_spectrograms(x), expected, atol=2e-6)
    with pytest.raises(ValueError, match="num_mel_bins must be positive"):
        tf.signal.mfccs_from_log_mel_spectrograms(np.ones((2, 0), np.float32))


def test_native_transforms_refuse_wrong_lengths():
    with pytest.raises(InvalidArgumentError, match="has 4 elements"):
        irfft_of(np.ones(3, complex), 6)


def test_transforms_of_nothing():
    for shape in ((0,), (2, 0), (0, 4), (2, 0, 4)):
        assert tf.signal.fft(tf.zeros(shape, tf.complex64)).shape == shape
        half = [*shape[:-1], shape[-1] // 2 + 1 if shape[-1] else 0]
        x = tf.zeros(shape)
        with tf.GradientTape() as tape:
            tape.watch(x)
            spectrum = tf.signal.rfft(x)
            back = tf.signal.irfft(spectrum)
        assert spectrum.shape == half and back.shape == shape and tape.gradient(back, x).shape == shape
        assert tf.signal.rfft(x, [0]).shape == (*shape[:-1], 0)
    assert tf.signal.rfft2d(tf.zeros([3, 2, 0])).shape == (3, 2, 0)
    assert tf.signal.irfft2d(tf.zeros([2, 0, 4], tf.complex64)).shape == (2, 0, 6)
    np.testing.assert_array_equal(tf.signal.rfft(tf.zeros([2, 0]), [4]), np.zeros((2, 3)))
    np.testing.assert_array_equal(tf.signal.irfft(tf.zeros([2, 0], tf.complex64), [4]), np.zeros((2, 4)))
