"""What an adversary can guess who knows the values of some or all other users."""
