"""The tools that `agentv eval` is measured against, one file each."""
