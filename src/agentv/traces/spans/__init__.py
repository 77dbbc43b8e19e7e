"""Spans: reading them from exports, storing them until all are there, and joining them to sessions."""
