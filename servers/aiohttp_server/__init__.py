"""The aiohttp server: its low-level server to read requests, its client to call the provider."""
