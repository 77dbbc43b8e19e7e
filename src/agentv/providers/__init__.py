"""Providers: the code that talks to targets."""
