"""Shared parts of the servers of a task: HTTP, settings, keys, and reports to their operator."""
