"""How fast agentv is, against the floor of the machine and against a peer."""
