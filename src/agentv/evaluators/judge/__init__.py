"""Checks that ask a model, without letting the agent answer for it."""
