"""Cases and targets made into runs: the plan, the engine, the attempts."""
