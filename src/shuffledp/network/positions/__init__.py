"""Laws of the position of a report after a random walk, exact or bounded."""
