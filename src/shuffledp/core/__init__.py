"""The ground floor: errors, bounds, profiles, entropy, checks, numerics; imports nothing above."""
