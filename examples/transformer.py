"""A small transformer reads a text about numbers, and learns to add and subtract.

    python examples/transformer.py            # a table of what it can do, and transformer.png
    python examples/transformer.py --quick    # a few steps

The text has sentences like "twenty seven plus twelve is thirty nine ." The model learns to predict the next word,
nothing else. Nine sentences in ten are for training; the others have to be completed.
"""

import sys

import numpy as np

import gradtape as tf

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = ["", "", *"twenty thirty forty fifty sixty seventy eighty ninety".split()]
WORDS = ["", ".", "plus", "minus", "is", *SMALL, *TENS[2:]]
LENGTH, WIDTH, HEADS = 10, 64, 4


def spell(n):
    return SMALL[n] if n < 20 else TENS[n // 10] + (" " + SMALL[n % 10] if n % 10 else "")


def sentences(limit):
    """All sentences, each as (kind, prompt, completion)."""
    for a in range(limit):
        for b in range(limit):
            yield "plus", f"{spell(a)} plus {spell(b)} is", f"{spell(a + b)} ."
            if a >= b:
                yield "minus", f"{spell(a)} minus {spell(b)} is", f"{spell(a - b)} ."


def encode(text):
    words = [WORDS.index(w) for w in text.split()]
    return words + [0] * (LENGTH - len(words))


class Block(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        layers = tf.keras.layers
        self.attention = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
        self.norm1, self.norm2 = layers.LayerNormalization(), layers.LayerNormalization()
        self.wide, self.narrow = layers.Dense(4 * WIDTH, activation="gelu"), layers.Dense(WIDTH)

    def call(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, use_causal_mask=True)
        return x + self.narrow(self.wide(self.norm2(x)))


class Transformer(tf.keras.Model):
    def __init__(self, depth=2):
        super().__init__()
        layers = tf.keras.layers
        self.words, self.places = layers.Embedding(len(WORDS), WIDTH), layers.Embedding(LENGTH, WIDTH)
        self.blocks = [Block() for _ in range(depth)]
        self.norm, self.scores = layers.LayerNormalization(), layers.Dense(len(WORDS))

    def call(self, tokens):
        x = self.words(tokens) + self.places(tf.range(tf.shape(tokens)[1]))
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


def right_answers(model, unseen):
    """For each kind of sentence: the part whose end the model finds, word by word."""
    results = {}
    for kind in ("plus", "minus"):
        chosen = [(given, rest) for k, given, rest in unseen if k == kind]
        answers = np.array([encode(given + " " + rest) for given, rest in chosen])
        tokens = answers.copy()
        lengths = np.array([len(given.split()) for given, _ in chosen])
        for k in range(1, LENGTH):
            guess = np.argmax(model(tokens[:, :-1]).numpy()[:, k - 1], axis=1)
            tokens[:, k] = np.where(k < lengths, answers[:, k], guess)
        end = np.cumsum(answers == 1, axis=1) - (answers == 1) > 0  # behind the full stop
        results[kind] = float(np.mean(np.all((tokens == answers) | end, axis=1))), chosen, tokens
    return results


def main(quick=False):
    tf.keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    text = list(sentences(12 if quick else 50))
    text = [text[k] for k in rng.permutation(len(text))]
    unseen, training = text[: len(text) // 10], text[len(text) // 10 :]
    data = np.array([encode(given + " " + rest) for _, given, rest in training], np.int32)
    model = Transformer()
    steps = 8 if quick else 3000
    schedule = tf.keras.optimizers.schedules.CosineDecay(3e-3, steps)
    optimizer = tf.keras.optimizers.AdamW(schedule, weight_decay=0.05)

    @tf.function
    def step(tokens):
        with tf.GradientTape() as tape:
            logits = model(tokens[:, :-1])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tokens[:, 1:], logits=logits)
            mask = tf.cast(tokens[:, 1:] > 0, tf.float32)
            loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
        # The words of a batch come again: their gradients are added up before Adam squares them.
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    losses, progress = [], {}
    for k in range(1, steps + 1):
        losses.append(float(step(tf.constant(data[rng.integers(0, len(data), 64)]))))
        if k % (steps // 8) == 0 and not quick:
            progress[k] = {kind: r[0] for kind, r in right_answers(model, unseen).items()}
            words = "  ".join(f"{kind} {r:6.1%}" for kind, r in progress[k].items())
            print(f"step {k:5}  loss {np.mean(losses[-100:]):.3f}   unseen: {words}")
    print("sentences it has not seen")
    for _, chosen, tokens in right_answers(model, unseen).values():
        for (given, rest), line in list(zip(chosen, tokens))[:4]:
            said = " ".join(WORDS[w] for w in line[len(given.split()) :]).split(".")[0] + "."
            print(f"  {given + ' ...':40} {said:30} {'right' if said == rest else 'wrong: ' + rest}")
    if not quick:
        draw(losses, progress)
    return losses


def draw(losses, progress):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    left.semilogy(np.convolve(losses, np.ones(20) / 20, "valid"))
    left.set(xlabel="step", ylabel="cross-entropy of a word (mean of 20)", title="training")
    for kind, name in [("plus", "sums"), ("minus", "differences")]:
        right.plot(list(progress), [p[kind] for p in progress.values()], "o-", label=name)
    right.set(xlabel="step", ylabel="completed correctly", title="sentences it has not seen", ylim=(0, 1.03))
    right.legend()
    figure.savefig("transformer.png", dpi=120)
    print("drawn to transformer.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
