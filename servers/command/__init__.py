"""The command, the same for both servers: options, and everything that a server is started with."""
