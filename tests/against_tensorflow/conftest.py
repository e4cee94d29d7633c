"""Nothing here is for pytest: the files need TensorFlow, and `make parity` runs them."""

collect_ignore_glob = ["*.py", "calls/*.py"]
