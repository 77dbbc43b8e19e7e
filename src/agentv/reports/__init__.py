"""Results made readable, for people and for other programs."""
