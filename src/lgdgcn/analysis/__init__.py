"""What people look at: measures and pictures of disentanglement."""
