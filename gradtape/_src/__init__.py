"""The inside of gradtape: everything that computes, records and differentiates.

What users import is beside this folder, a module for each namespace of TensorFlow; nothing in here imports any of
it. The packages and their layers are shown in docs/design.md and checked by tests/test_package.py.
"""
