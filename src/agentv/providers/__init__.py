"""The code that talks to the system under test, one file a way of reaching it."""
