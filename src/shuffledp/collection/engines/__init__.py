"""What runs a plan on data: in memory, or through scratch files when it does not fit."""
