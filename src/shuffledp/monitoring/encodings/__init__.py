"""What a user's value is to the tree of counters: a bit, or one bit of it at a time."""
