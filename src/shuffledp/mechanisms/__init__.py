"""How data moves: randomizers, shufflers and estimators. Never imports the privacy wing."""
