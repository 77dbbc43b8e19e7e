"""The library in a handful of functions: composition happens here and nowhere else."""
