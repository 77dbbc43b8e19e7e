"""Conventions for the attributes of spans: what a span is about, under the names that each emitter uses."""
