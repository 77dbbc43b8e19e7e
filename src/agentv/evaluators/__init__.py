"""Checks on a run: one file a family, found by name through the registry."""
