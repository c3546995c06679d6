"""What a shuffle within groups guarantees: d_sigma-privacy, and central bounds."""
