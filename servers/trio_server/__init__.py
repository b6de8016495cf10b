"""The trio server: it reads requests from sockets itself, and calls the provider with httpcore."""
