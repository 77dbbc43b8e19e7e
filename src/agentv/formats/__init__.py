"""Readers and writers of replies and conversations in foreign formats, one module per wire format."""
