"""The files here need TensorFlow and are run by `make parity`; pytest collects only test_known.py."""

collect_ignore_glob = ["[!t]*.py", "calls/*.py"]
