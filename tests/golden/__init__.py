"""Records of what the product does today, which every later change is held to."""
