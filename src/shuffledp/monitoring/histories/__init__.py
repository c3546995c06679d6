"""What every user's value is in every period: read, made up, reduced to changes."""
