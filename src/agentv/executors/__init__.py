"""Executors: run the requests of targets on the workers of an engine."""
