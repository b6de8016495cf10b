"""The aiohttp server: it reads requests on connections of aiohttp's server, and calls the provider with its client."""
