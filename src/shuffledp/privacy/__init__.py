"""What data collection guarantees: amplification, accounting. Never imports mechanisms."""
