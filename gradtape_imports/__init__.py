"""How `import tensorflow` and `import keras` come to mean gradtape.

**TensorFlow**, for programs and packages that nobody wants to edit: three doors lead to one import finder
(`tensorflow_finder.py`):

- `gradtape.install_as_tensorflow()` in a program, before anything imports TensorFlow;
- `python -m gradtape run script.py` (or `run -m module`) for a program as it is (`run.py`);
- `GRADTAPE_AS_TENSORFLOW=1` in the environment, for every Python that is started there (`start.py`).

`tensorflow.X` is then the same module object as `gradtape.X`. `internals.py` lists what there is of TensorFlow's internal
modules, `metadata.py` answers for the version of the package. Nothing of it is imported unless one of the doors is used.

**Keras** chooses its backend while it is imported: `keras_hook.py` lets it choose gradtape.
"""
