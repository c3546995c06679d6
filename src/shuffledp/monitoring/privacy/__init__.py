"""What longitudinal monitoring guarantees: locally, and centrally once reports are shuffled."""
