"""The lowest layer: types, shapes, nests, errors, scopes and the log. It imports nothing from other layers."""
