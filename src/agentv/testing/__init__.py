"""For the test suites of those who write providers of their own."""

from agentv.testing.conformance import Check, assert_conforms, provider_conformance

__all__ = ["Check", "assert_conforms", "provider_conformance"]
