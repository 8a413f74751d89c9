"""The explorer: one HTML file to walk through a trained model, its graph and its factors."""
