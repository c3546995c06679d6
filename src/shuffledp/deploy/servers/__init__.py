"""What the servers of a task share: HTTP, settings, keys, and what their operator is told."""
