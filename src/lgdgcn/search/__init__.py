"""Settings for a graph: portfolios, the number of factors, and searches of any length."""
