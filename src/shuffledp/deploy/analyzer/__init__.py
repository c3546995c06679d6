"""The analyzer of a task: what it counts, and how it serves results."""
