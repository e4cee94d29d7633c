"""Graphs: what a trace records, and the passes over it before an engine runs it.

In processing order: `ir` (values, nodes, tracing), `trace` (a running function writes a graph), `effects`, `custom`,
`python_op` (what is more than an op), `simplify`, `callable` (a graph that is called, and its derivative), `check`.
"""
