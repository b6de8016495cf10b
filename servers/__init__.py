"""Servers: programs that run the core on a runtime, and a simulated cloud to run them against."""
