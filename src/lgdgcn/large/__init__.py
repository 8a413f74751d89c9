"""Graphs that do not fit into memory: batches of nodes, and predictions piece by piece."""
