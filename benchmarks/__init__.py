"""Speed and memory of agentv, against the floor of the machine and against peers."""
