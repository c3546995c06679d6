"""Peers pass reports on with no trusted shuffler: the protocol, and the service around it."""
