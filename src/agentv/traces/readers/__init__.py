"""Formats of trace files: how each is recognized and read."""
