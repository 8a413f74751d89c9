"""Measuring a training step: rows side by side, each in a process of its own."""
