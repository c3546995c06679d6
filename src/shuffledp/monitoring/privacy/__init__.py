"""Privacy guarantees of longitudinal monitoring: local, and central once reports are shuffled."""
