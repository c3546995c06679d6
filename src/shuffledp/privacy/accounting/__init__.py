"""Questions turned round: which epsilon0, or how many users, meet a central target."""
