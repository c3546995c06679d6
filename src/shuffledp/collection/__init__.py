"""Joins the two wings: plans a collection, runs it, and holds what came out."""
