"""Reference orders, and how sensitive rank distances are to them."""
