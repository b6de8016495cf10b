"""The settings file of an operator, the master key, and ways to run a server that are unsafe."""
