"""gradtape and TensorFlow in one process, call by call: `make parity`. Not part of `make test`."""
