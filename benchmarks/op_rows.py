"""The ops that are measured one by one, in each library's API.

A row has the shapes of the operands a, b, c and the op in TensorFlow's API (also gradtape's), PyTorch's, JAX's and
autograd's; "" where a library has no such op. With `images`, PyTorch gets its operands with the channels first. The
names that may be used are those of `ops._names`.
"""

from __future__ import annotations

from typing import NamedTuple

Shape = tuple[int | str, ...]


class Row(NamedTuple):
    shapes: tuple[Shape, ...]
    tf: str
    torch: str
    jax: str
    autograd: str = ""
    images: bool = False
    positive: bool = False  # the first operand is a symmetric positive definite matrix
    dtype: str = "float32"  # autograd has no other


# Large ops, forward only. N is the number of elements; n the side of the square that has about as many.
LARGE = {
    "add": Row((("N",), ("N",)), "a + b", "a + b", "a + b"),
    "mul": Row((("N",), ("N",)), "a * b", "a * b", "a * b"),
    "exp": Row((("N",),), "tf.exp(a)", "torch.exp(a)", "np.exp(a)"),
    "tanh": Row((("N",),), "tf.tanh(a)", "torch.tanh(a)", "np.tanh(a)"),
    "sigmoid": Row((("N",),), "tf.sigmoid(a)", "torch.sigmoid(a)", "jax.nn.sigmoid(a)"),
    "relu": Row((("N",),), "tf.nn.relu(a)", "torch.relu(a)", "jax.nn.relu(a)"),
    "sum": Row((("N",),), "tf.reduce_sum(a)", "torch.sum(a)", "np.sum(a)"),
    "max": Row((("N",),), "tf.reduce_max(a)", "torch.amax(a)", "np.max(a)"),
    "sum axis 0": Row((("n", "n"),), "tf.reduce_sum(a, 0)", "torch.sum(a, 0)", "np.sum(a, 0)"),
    "sum axis 1": Row((("n", "n"),), "tf.reduce_sum(a, 1)", "torch.sum(a, 1)", "np.sum(a, 1)"),
    "softmax": Row((("n", "n"),), "tf.nn.softmax(a)", "torch.softmax(a, -1)", "jax.nn.softmax(a)"),
    "transpose": Row((("n", "n"),), "tf.transpose(a)", "a.T.contiguous()", "np.transpose(a)"),
    "matmul": Row((("n", "n"), ("n", "n")), "tf.matmul(a, b)", "torch.matmul(a, b)", "np.matmul(a, b)"),
    "add bfloat16": Row((("N",), ("N",)), "a + b", "a + b", "a + b", dtype="bfloat16"),
    "add float16": Row((("N",), ("N",)), "a + b", "a + b", "a + b", dtype="float16"),
    "sum axis 1 bfloat16": Row(
        (("n", "n"),), "tf.reduce_sum(a, 1)", "torch.sum(a, 1)", "np.sum(a, 1)", dtype="bfloat16"
    ),
    "matmul bfloat16": Row(
        (("n", "n"), ("n", "n")), "tf.matmul(a, b)", "torch.matmul(a, b)", "np.matmul(a, b)", dtype="bfloat16"
    ),
}  # fmt: skip
SIZES = (10_000, 100_000, 1_000_000, 4_000_000)

# Layers, value and gradient with respect to every operand.
LAYERS = {
    "conv2d 3x3, 32x28x28x32 to 64": Row(
        ((32, 28, 28, 32), (3, 3, 32, 64)), "tf.nn.conv2d(a, b, 1, 'SAME')", "F.conv2d(a, b, padding=1)",
        "conv(a, b, 'SAME')", images=True,
    ),
    "conv2d 1x1, 16x28x28x128 to 128": Row(
        ((16, 28, 28, 128), (1, 1, 128, 128)), "tf.nn.conv2d(a, b, 1, 'SAME')", "F.conv2d(a, b)",
        "conv(a, b, 'SAME')", images=True,
    ),
    "conv2d 7x7 stride 2, 4x112x112x3 to 64": Row(
        ((4, 112, 112, 3), (7, 7, 3, 64)), "tf.nn.conv2d(a, b, 2, 'VALID')", "F.conv2d(a, b, stride=2)",
        "conv(a, b, 'VALID', 2)", images=True,
    ),
    "depthwise 3x3, 16x28x28x64": Row(
        ((16, 28, 28, 64), (3, 3, 64, 1)), "tf.nn.depthwise_conv2d(a, b, [1, 1, 1, 1], 'SAME')",
        "F.conv2d(a, b.transpose(0, 1), padding=1, groups=64)",
        "conv(a, b.transpose(0, 1, 3, 2), 'SAME', groups=64)", images=True,
    ),
    "conv1d 5, 32x256x64 to 64": Row(
        ((32, 256, 64), (5, 64, 64)), "tf.nn.conv1d(a, b, 1, 'SAME')", "F.conv1d(a, b, padding=2)",
        "conv(a, b, 'SAME')", images=True,
    ),
    "max_pool2d 2x2, 32x28x28x64": Row(
        ((32, 28, 28, 64),), "tf.nn.max_pool2d(a, 2, 2, 'VALID')", "F.max_pool2d(a, 2)", "max_pool(a)", images=True,
    ),
    "avg_pool2d 2x2, 32x28x28x64": Row(
        ((32, 28, 28, 64),), "tf.nn.avg_pool2d(a, 2, 2, 'VALID')", "F.avg_pool2d(a, 2)", "avg_pool(a)", images=True,
    ),
    "attention 8x4 heads, 128x64": Row(
        ((8, 4, 128, 64),) * 3, "tf.matmul(tf.nn.softmax(tf.matmul(a, b, transpose_b=True) * 0.125), c)",
        "F.scaled_dot_product_attention(a, b, c)",
        "np.matmul(jax.nn.softmax(np.matmul(a, b.swapaxes(-1, -2)) * 0.125), c)",
    ),
    "attention 2x8 heads, 512x64": Row(
        ((2, 8, 512, 64),) * 3, "tf.matmul(tf.nn.softmax(tf.matmul(a, b, transpose_b=True) * 0.125), c)",
        "F.scaled_dot_product_attention(a, b, c)",
        "np.matmul(jax.nn.softmax(np.matmul(a, b.swapaxes(-1, -2)) * 0.125), c)",
    ),
    "layer norm 1024x256": Row(
        ((1024, 256), (256,), (256,)), "layer_norm(a, b, c)", "F.layer_norm(a, (256,), b, c)", "layer_norm(a, b, c)",
    ),
    "batch norm 32x28x28x64": Row(
        ((32, 28, 28, 64), (64,), (64,)), "batch_norm(a, b, c)", "F.batch_norm(a, None, None, b, c, True)",
        "batch_norm(a, b, c)", images=True,
    ),
    "gelu 1024x1024": Row(((1024, 1024),), "tf.nn.gelu(a)", "F.gelu(a)", "jax.nn.gelu(a, approximate=False)"),
    "patches 3x3, 16x28x28x32": Row(
        ((16, 28, 28, 32),),
        "tf.image.extract_patches(a, [1, 3, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1], 'VALID')", "F.unfold(a, 3)",
        "patches(a)", images=True,
    ),
    "log softmax 128x10,000": Row(
        ((128, 10_000),), "tf.nn.log_softmax(a)", "F.log_softmax(a, -1)", "jax.nn.log_softmax(a)",
    ),
}  # fmt: skip

# Linear algebra and transforms, value and gradient.
LINALG = {
    "cholesky 128": Row(
        ((128, 128),), "tf.linalg.cholesky(a)", "torch.linalg.cholesky(a)",
        "np.linalg.cholesky(a)", "np.linalg.cholesky(a)", positive=True,
    ),
    "solve 128, 16 right sides": Row(
        ((128, 128), (128, 16)), "tf.linalg.solve(a, b)", "torch.linalg.solve(a, b)", "np.linalg.solve(a, b)",
        "np.linalg.solve(a, b)", positive=True,
    ),
    "solve 4, batch 1000": Row(
        ((1000, 4, 4), (1000, 4, 1)), "tf.linalg.solve(a, b)", "torch.linalg.solve(a, b)", "np.linalg.solve(a, b)",
        "np.linalg.solve(a, b)", positive=True,
    ),
    "triangular solve 256, 64 right sides": Row(
        ((256, 256), (256, 64)), "tf.linalg.triangular_solve(a, b)",
        "torch.linalg.solve_triangular(a, b, upper=False)", "jax.scipy.linalg.solve_triangular(a, b, lower=True)",
        positive=True,
    ),
    "inverse 128": Row(
        ((128, 128),), "tf.linalg.inv(a)", "torch.linalg.inv(a)", "np.linalg.inv(a)", "np.linalg.inv(a)",
        positive=True,
    ),
    "log determinant 128": Row(
        ((128, 128),), "tf.linalg.slogdet(a)[1]", "torch.linalg.slogdet(a)[1]", "np.linalg.slogdet(a)[1]",
        "np.linalg.slogdet(a)[1]", positive=True,
    ),
    "singular values 64": Row(
        ((64, 64),), "tf.linalg.svd(a, compute_uv=False)", "torch.linalg.svdvals(a)",
        "np.linalg.svd(a, compute_uv=False)", "np.linalg.svd(a, compute_uv=False)",
    ),
    "eigenvalues 64, symmetric": Row(
        ((64, 64),), "tf.linalg.eigvalsh(a)", "torch.linalg.eigvalsh(a)",
        "np.linalg.eigh(a)[0]", "np.linalg.eigh(a)[0]", positive=True,
    ),
    "fft 65,536": Row(
        ((65_536,), (65_536,)), "tf.math.real(tf.signal.fft(tf.complex(a, b)))",
        "torch.fft.fft(torch.complex(a, b)).real", "np.fft.fft(a + 1j * b).real", "np.real(np.fft.fft(a + 1j * b))",
    ),
    "fft2 256x256": Row(
        ((256, 256), (256, 256)), "tf.math.real(tf.signal.fft2d(tf.complex(a, b)))",
        "torch.fft.fft2(torch.complex(a, b)).real", "np.fft.fft2(a + 1j * b).real",
        "np.real(np.fft.fft2(a + 1j * b))",
    ),
    "rfft 64 signals of 1024": Row(
        ((64, 1024),), "tf.math.real(tf.signal.rfft(a))", "torch.fft.rfft(a).real", "np.fft.rfft(a).real",
    ),
}  # fmt: skip
