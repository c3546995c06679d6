"""Where answers come from: files, values in memory, and the surveys of the demo."""
