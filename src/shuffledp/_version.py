"""The version, written once."""

__version__ = "0.3.0"
