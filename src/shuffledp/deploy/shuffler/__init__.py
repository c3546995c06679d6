"""The shuffler of a task: what it keeps and releases, and how it serves that."""
