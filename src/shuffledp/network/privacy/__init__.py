"""What network shuffling guarantees."""
