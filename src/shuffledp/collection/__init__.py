"""The main job: plans a collection, runs it, and holds what came out."""
