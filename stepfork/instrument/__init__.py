"""Patching: hooks, the driver and the adapters. Knows SDKs and tools, no file."""
