"""Graphs of who can pass reports on to whom, and random walks on them."""
