"""`tensorflow.python.pywrap_tfe`: which devices of others are plugged in."""


def TF_ListPluggablePhysicalDevices() -> list[bytes]:
    """None are."""
    return []
