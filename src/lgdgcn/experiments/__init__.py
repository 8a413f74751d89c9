"""The paper's tables and figures as data: configurations, the paper's numbers, and ours."""
