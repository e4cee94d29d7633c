"""Graphs: what a trace records, what is made of it, and how it becomes a native program.

In processing order: `ir` (values, nodes, tracing), `simplify` (constants, algebra, common
subexpressions, transposes into products), `fuse` (clusters of element-wise ops), `plan` (where
values live), `lower` (the program).
"""
