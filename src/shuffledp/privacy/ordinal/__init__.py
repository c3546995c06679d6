"""What a shuffle within groups guarantees: d_sigma-privacy, and what it means for an adversary."""
