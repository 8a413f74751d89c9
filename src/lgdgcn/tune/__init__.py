"""Hyper-parameter search: Optuna asks, populations answer, the validation set decides."""
