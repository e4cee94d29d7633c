"""Makes `import tensorflow` and `import keras` use gradtape.

**TensorFlow**, for programs and packages that are not to be edited: three entry points use one import finder
(`tensorflow_finder.py`):

- `gradtape.install_as_tensorflow()` in a program, before anything imports TensorFlow;
- `python -m gradtape run script.py` (or `run -m module`) for an unmodified program (`run.py`);
- `GRADTAPE_AS_TENSORFLOW=1` in the environment, for every Python that is started there (`start.py`).

`tensorflow.X` is then the same module object as `gradtape.X`. `internals.py` lists the supported internal modules
of TensorFlow, `metadata.py` reports the version of the package. Nothing of this is imported unless one of the entry
points is used.

**Keras** chooses its backend while it is imported: `keras_hook.py` lets it choose gradtape.
"""
