"""How two values, or two lists of them, are held against each other: pure and without I/O."""
