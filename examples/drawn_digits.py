"""Images of digits for the examples, drawn with NumPy: nothing has to be downloaded.

    python examples/drawn_digits.py    # shows a few in the terminal

A 5 x 7 font, rotated, sheared, scaled, shifted and blurred at random, with noise.
"""

import numpy as np

FONT = """
.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""
GLYPHS = np.array([[c == "#" for c in line] for line in FONT.replace(" ", "").split()], np.float32)
GLYPHS = GLYPHS.reshape(7, 10, 5).transpose(1, 0, 2)
SIDE = 16


def draw_digits(count, rng, noise=0.12, variety=1.0):
    """`count` images [count, SIDE * SIDE] between 0 and 1, and their labels."""
    labels = rng.integers(0, 10, count)
    angle, shear = variety * rng.normal(0, 0.15, count), variety * rng.normal(0, 0.15, count)
    size = 0.925 + variety * rng.uniform(-0.175, 0.175, count)
    shift = variety * rng.normal(0, 0.8, (count, 2))
    grid = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), -1) - (SIDE - 1) / 2
    rows, cols = grid[None, ..., 0] - shift[:, None, None, 0], grid[None, ..., 1] - shift[:, None, None, 1]
    c, s = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    u = (c * rows + s * cols) / size[:, None, None] / 2 + 3
    v = (c * cols - s * rows + shear[:, None, None] * rows) / size[:, None, None] / 2 + 2
    # Bilinear interpolation of the glyph at (u, v); outside it there is no ink.
    padded = np.pad(GLYPHS, ((0, 0), (2, 2), (2, 2)))
    u, v = np.clip(u + 2, 0, 9.99), np.clip(v + 2, 0, 7.99)
    i, j = u.astype(int), v.astype(int)
    fu, fv, k = u - i, v - j, labels[:, None, None]
    ink = (
        padded[k, i, j] * (1 - fu) * (1 - fv) + padded[k, i + 1, j] * fu * (1 - fv)
        + padded[k, i, j + 1] * (1 - fu) * fv + padded[k, i + 1, j + 1] * fu * fv
    )  # fmt: skip
    noisy = ink * rng.uniform(0.6, 1, (count, 1, 1)) + rng.normal(0, noise, ink.shape)
    return np.clip(noisy, 0, 1).reshape(count, -1).astype(np.float32), labels.astype(np.int32)


if __name__ == "__main__":
    images, labels = draw_digits(4, np.random.default_rng(0))
    for image, label in zip(images.reshape(-1, SIDE, SIDE), labels, strict=True):
        print(f"a {label}:")
        for row in image[::2]:  # characters are twice as high as they are wide
            print("".join(" .:-=+*#%@"[min(int(10 * p), 9)] for p in row))
