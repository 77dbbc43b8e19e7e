"""Evaluators, one module per family; the registry finds them by name."""
