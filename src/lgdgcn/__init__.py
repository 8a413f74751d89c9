"""Disentangled node representations on graphs (LGD-GCN)."""

__version__ = "0.1.0"
