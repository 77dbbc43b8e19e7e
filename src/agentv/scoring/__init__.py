"""From a reply to what evaluators see, and from their findings to an outcome: pure and without I/O."""
