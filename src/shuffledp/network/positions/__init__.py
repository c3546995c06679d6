"""Where reports are after some rounds: exact laws, and bounds on them."""
