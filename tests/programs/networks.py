"""Networks written by hand: recurrent cells, attention, normalisation, embeddings, dropout."""

import numpy as np

from .corpus import dense, integers, normal, objective, ones, program, uniform, zeros


@objective
def perceptron_relu(tf):
    """Three layers of relu."""

    def loss(w1, b1, w2, b2, w3, b3, x, y):
        h = tf.nn.relu(tf.matmul(x, w1) + b1)
        h = tf.nn.relu(tf.matmul(h, w2) + b2)
        return tf.reduce_mean((tf.matmul(h, w3) + b3 - y) ** 2)

    return loss, dense(0, 3, 8, 8, 1), [normal(1, 12, 3), normal(2, 12, 1)]


@objective
def activations_in_a_row(tf):
    """One layer of each smooth activation."""

    def loss(w, b, x):
        for f in (
            tf.nn.gelu,
            tf.nn.silu,
            tf.nn.softplus,
            tf.tanh,
            tf.sigmoid,
            tf.nn.selu,
            tf.nn.elu,
            tf.nn.leaky_relu,
        ):
            x = f(x @ w + b)
        return tf.reduce_sum(x**2)

    return loss, [normal(3, 5, 5, scale=0.7), normal(4, 5)], [normal(5, 6, 5)]


@objective
def lstm(tf):
    """A long short-term memory cell over six steps, all gates in one product."""

    def loss(w, u, b, x, y):
        h = c = tf.zeros([x.shape[0], 4])
        for t in range(x.shape[1]):
            i, f, g, o = tf.split(x[:, t] @ w + h @ u + b, 4, axis=-1)
            c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
        return tf.reduce_mean((h - y) ** 2)

    return (
        loss,
        [normal(6, 3, 16, scale=0.5), normal(7, 4, 16, scale=0.5), zeros(16)],
        [normal(8, 5, 6, 3), normal(9, 5, 4)],
    )


@objective
def gru(tf):
    """A gated recurrent unit; the sequence is split by unstack and joined by stack."""

    def loss(wz, wr, wh, x):
        h = tf.zeros((2, 3))
        outputs = []
        for xt in tf.unstack(x, axis=1):
            xh = tf.concat([xt, h], axis=1)
            z, r = tf.sigmoid(xh @ wz), tf.sigmoid(xh @ wr)
            h = (1 - z) * h + z * tf.tanh(tf.concat([xt, r * h], 1) @ wh)
            outputs.append(h)
        return tf.reduce_mean(tf.stack(outputs, axis=1)[:, ::2] ** 2)

    return loss, [normal(10 + i, 5, 3, scale=0.6) for i in range(3)], [normal(13, 2, 5, 2)]


@objective
def attention(tf):
    """Scaled dot products with a causal mask."""

    def loss(wq, wk, wv, x):
        q, k, v = x @ wq, x @ wk, x @ wv
        scores = tf.matmul(q, k, transpose_b=True) / np.sqrt(4.0).astype("float32")
        mask = tf.linalg.band_part(tf.ones((5, 5)), -1, 0)
        scores += (1.0 - mask) * -1e9
        return tf.reduce_mean(tf.square(tf.nn.softmax(scores) @ v))

    return loss, [normal(14 + i, 4, 4, scale=0.5) for i in range(3)], [normal(17, 2, 5, 4)]


@objective
def transformer_block(tf):
    """Two heads, layer norms, residuals and a gelu network, next-token loss on tied embeddings."""

    def norm(x, g, b):
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), axis=-1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * g + b

    def loss(emb, qkv, out, g1, b1, g2, b2, w1, c1, w2, c2, tokens):
        x = tf.gather(emb, tokens[:, :-1])
        q, k, v = tf.unstack(tf.einsum("btd,dchk->cbhtk", norm(x, g1, b1), qkv))
        scores = tf.einsum("bhtk,bhsk->bhts", q, k) / 2.0
        causal = tf.range(5)[:, None] >= tf.range(5)[None, :]
        weights = tf.nn.softmax(tf.where(causal, scores, tf.fill(scores.shape, -1e9)), axis=-1)
        x = x + tf.einsum("bhts,bhsk,hkd->btd", weights, v, out)
        x = x + tf.nn.gelu(norm(x, g2, b2) @ w1 + c1) @ w2 + c2
        logits = tf.einsum("btd,vd->btv", x, emb)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tokens[:, 1:], logits))

    params = [normal(18, 7, 8, scale=0.5), normal(19, 8, 3, 2, 4, scale=0.3), normal(20, 2, 4, 8, scale=0.3)]
    params += [ones(8), zeros(8), ones(8), zeros(8), *dense(21, 8, 16, 8)]
    return loss, params, [integers(22, 7, 3, 6)]


@objective
def layer_norm_network(tf):
    """Layer normalisation by hand around a product."""

    def loss(w, gain, bias, x):
        h = tf.matmul(x, w)
        mean = tf.reduce_mean(h, axis=-1, keepdims=True)
        std = tf.sqrt(tf.reduce_mean(tf.square(h - mean), axis=-1, keepdims=True) + 1e-6)
        return tf.reduce_mean(tf.sin(gain * (h - mean) / std + bias))

    return loss, [normal(23, 4, 6), ones(6), zeros(6)], [normal(24, 7, 4)]


@objective
def batch_norm_network(tf):
    """Batch normalisation of two layers, second one with a scale of its own."""

    def loss(w1, w2, scale, offset, x, y):
        h = x @ w1
        # Not tf.nn.moments: TensorFlow's stops the gradient with respect to the mean, so its second order is wrong.
        mean, var = tf.reduce_mean(h, axis=0), tf.math.reduce_variance(h, axis=0)
        h = tf.nn.relu(tf.nn.batch_normalization(h, mean, var, offset, scale, 1e-3))
        return tf.reduce_mean((h @ w2 - y) ** 2)

    return (
        loss,
        [normal(25, 3, 6), normal(26, 6, 1), ones(6), zeros(6) + 0.1],
        [normal(27, 10, 3), normal(28, 10, 1)],
    )


@program
def batch_norm_moving_statistics(tf, step, forward):
    """Moving averages are assigned inside the tape and used afterwards."""
    w, mean, var = (
        tf.Variable(normal(29, 3, 2)),
        tf.Variable(zeros(2), trainable=False),
        tf.Variable(ones(2), trainable=False),
    )
    x = tf.constant(normal(30, 8, 3))

    @step
    def train(x):
        with tf.GradientTape() as tape:
            h = x @ w
            m, v = tf.nn.moments(h, [0])
            mean.assign(0.9 * mean + 0.1 * m)
            var.assign(0.9 * var + 0.1 * v)
            loss = (
                tf.reduce_mean(((h - m) / tf.sqrt(v + 1e-3) - 0.5) ** 4) + tf.reduce_sum(tf.square(w)) * 0.1
            )
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    losses = [train(x) for _ in range(3)]
    return losses, w, mean, var, (x @ w - mean) * tf.math.rsqrt(var + 1e-3)


@objective
def dropout_with_fixed_masks(tf):
    """The masks are data, as in a test of dropout."""

    def loss(w1, b1, w2, b2, x, mask1, mask2):
        h = tf.nn.relu(x @ w1 + b1) * mask1 / 0.5
        return tf.reduce_mean(tf.square((h @ w2 + b2) * mask2 / 0.8))

    masks = [
        (uniform(31, 0, 1, 6, 10) < 0.5).astype("float32"),
        (uniform(32, 0, 1, 6, 3) < 0.8).astype("float32"),
    ]
    return loss, dense(33, 4, 10, 3), [normal(34, 6, 4), *masks]


@objective
def residual_network(tf):
    """Six residual blocks share their weights."""

    def loss(w1, w2, x):
        for _ in range(6):
            x = x + tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2)
        return tf.reduce_mean(tf.reduce_sum(x * x, axis=1))

    return loss, [normal(35, 4, 6, scale=0.3), normal(36, 6, 4, scale=0.3)], [normal(37, 5, 4)]


@objective
def einsum_network(tf):
    """Bilinear layers by einsum only."""

    def loss(a, b, c, x, z):
        h = tf.tanh(tf.einsum("ni,ijk,nj->nk", x, a, z))
        h = tf.einsum("nk,kl,nl->n", h, b, tf.einsum("nk,kl->nl", h, c))
        return tf.einsum("n,n->", h, h) / 6.0

    return (
        loss,
        [normal(38, 3, 4, 5, scale=0.4), normal(39, 5, 5), normal(40, 5, 5)],
        [normal(41, 6, 3), normal(42, 6, 4)],
    )


@objective
def convolution_by_gather(tf):
    """A one-dimensional convolution made of slices, max pooling by reshape."""

    def loss(kernel, w, x, y):
        windows = tf.stack([x[:, i : i + 6] for i in range(3)], axis=2)
        h = tf.nn.relu(tf.einsum("blkc,kcf->blf", windows, kernel))
        h = tf.reduce_max(tf.reshape(h, (4, 3, 2, 5)), axis=2)
        logits = tf.reshape(h, [4, -1]) @ w
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))

    return (
        loss,
        [normal(43, 3, 2, 5), normal(44, 15, 3, scale=0.3)],
        [normal(45, 4, 8, 2), integers(46, 3, 4)],
    )


@program
def embedding_with_sparse_update(tf, step, forward):
    """Only the rows that were looked up change."""
    table, w = tf.Variable(normal(47, 9, 4)), tf.Variable(normal(48, 4, 1))
    words, y = tf.constant(integers(49, 9, 5, 3)), tf.constant(normal(50, 5, 1))

    @forward
    def score(words):
        return tf.reduce_mean(tf.nn.embedding_lookup(table, words), axis=1) @ w

    @step
    def train(words, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((score(words) - y) ** 2)
        g_table, g_w = tape.gradient(loss, [table, w])
        table.assign_sub(0.1 * tf.convert_to_tensor(g_table))
        w.assign_sub(0.1 * g_w)
        return loss

    return [train(words, y) for _ in range(4)], table, w


@program
def scatter_sub_of_indexed_slices(tf, step, forward):
    """The sparse gradient goes into the variable by `scatter_sub`."""
    table = tf.Variable(normal(51, 6, 3))

    @forward
    def rows(index):
        return tf.gather(table, index)

    losses = []
    for t in range(3):
        index = tf.constant([t, 4, t, 1])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(rows(index)))
        g = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(0.1 * g.values, g.indices))
        losses.append(loss)
    return losses, table


@objective
def skip_gram(tf):
    """Negative sampling: two embeddings, gathered, multiplied."""

    def loss(centers, contexts, center, context, negative):
        c = tf.nn.embedding_lookup(centers, center)
        positive = tf.reduce_sum(c * tf.nn.embedding_lookup(contexts, context), axis=1)
        others = tf.einsum("bd,bnd->bn", c, tf.gather(contexts, negative))
        return -tf.reduce_mean(tf.math.log_sigmoid(positive) + tf.reduce_sum(tf.math.log_sigmoid(-others), 1))

    data = [integers(52, 8, 6), integers(53, 8, 6), integers(54, 8, 6, 3)]
    return loss, [normal(55, 8, 4), normal(56, 8, 4)], data


@objective(order=1)  # TensorFlow has no second order here
def graph_convolution(tf):
    """Messages along edges, summed by segment."""

    def loss(w1, w2, x, source, target):
        for w in (w1, w2):
            messages = tf.gather(x, source) @ w
            x = tf.nn.tanh(tf.math.unsorted_segment_sum(messages, target, num_segments=5) + x)
        return tf.reduce_mean(tf.reduce_max(x, axis=0) ** 2)

    return (
        loss,
        [normal(57, 3, 3), normal(58, 3, 3)],
        [normal(59, 5, 3), integers(60, 5, 12), integers(61, 5, 12)],
    )


@objective
def recursive_tree_network(tf):
    """Recursion over a tree of Python tuples."""
    tree = ((0, 1), ((2, (3, 0)), 1))

    def loss(leaves, w, b):
        def encode(node):
            if isinstance(node, int):
                return leaves[node]
            left, right = map(encode, node)
            return tf.tanh(tf.linalg.matvec(w, tf.concat([left, right], 0), transpose_a=True) + b)

        return tf.reduce_sum(encode(tree) ** 2)

    return loss, [normal(62, 4, 3), normal(63, 6, 3, scale=0.5), zeros(3)], []


@objective
def hypernetwork(tf):
    """One network makes the weights of another."""

    def loss(w, b, z, x, y):
        flat = tf.tanh(tf.linalg.matvec(w, z) + b)
        w1, w2 = tf.reshape(flat[:6], [2, 3]), tf.reshape(flat[6:], [3, 1])
        return tf.reduce_mean((tf.nn.softplus(x @ w1) @ w2 - y) ** 2)

    return loss, [normal(64, 9, 4), zeros(9)], [normal(65, 4), normal(66, 8, 2), normal(67, 8, 1)]
