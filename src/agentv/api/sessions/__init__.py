"""Stored traces: scoring them, importing them into the store, converting them, and making cases of them."""
