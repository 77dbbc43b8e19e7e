"""Readers of stored traces: sessions of agents from files of telemetry, coding agents, stores and logs."""
