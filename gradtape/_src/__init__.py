"""The inside of gradtape: everything that computes, records and differentiates.

What users import stands beside this folder, a module for each namespace of TensorFlow; nothing in here imports
any of it. The rooms and their floors are drawn in docs/design.md and checked by tests/test_package.py.
"""
