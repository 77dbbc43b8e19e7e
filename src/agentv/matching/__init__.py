"""Comparison of values and of lists of values, without I/O."""
