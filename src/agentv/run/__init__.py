"""Execution of evals: plan, engine, attempts, rate limits, claims and the summary."""
