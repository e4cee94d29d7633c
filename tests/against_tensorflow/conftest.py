"""The files here need TensorFlow, and `make parity` runs them; pytest has test_known.py alone."""

collect_ignore_glob = ["[!t]*.py", "calls/*.py"]
