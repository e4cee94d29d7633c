"""Optimizers that need no Keras.

In reading order: `rules` (one short method each), `base` (options and state), `step` (what a step
computes, as one native program), `schedules`; then `loss_scale` (for float16) and `scipy_minimize`.
"""
