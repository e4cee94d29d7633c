"""What every Keras layer is besides a Keras layer: here nothing."""


class BackendLayer:
    """Mixin of all layers."""
