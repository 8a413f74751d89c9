"""Decisions about runs: objective, loop, seeds, checkpoints, run folders."""
