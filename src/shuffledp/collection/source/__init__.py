"""Sources of answers: files, values in memory, and the surveys of the demo."""
