"""Eval and project files: parsing, validation with all problems at once, and loading into `Eval` values."""
