"""Numbers that can be trusted: tails with error budgets, contour sums, monotone inversion."""
