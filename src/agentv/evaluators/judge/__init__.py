"""Evaluators that ask a model, protected against instructions in the agent's output."""
