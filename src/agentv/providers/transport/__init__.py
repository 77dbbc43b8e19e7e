"""HTTP transport of the providers that talk to servers."""
