"""What a channel is worth to an adversary: gains, vulnerability, capacities, refinement."""
