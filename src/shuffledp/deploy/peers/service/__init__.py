"""Peer-to-peer collections for real: the only sockets, databases and clocks of the package."""
