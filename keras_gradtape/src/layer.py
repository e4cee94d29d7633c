"""The backend's base class of Keras layers; it adds nothing."""


class BackendLayer:
    """Mixin of all layers."""
