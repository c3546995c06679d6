"""Channels: a secret goes in, an observation comes out."""
