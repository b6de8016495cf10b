"""The trio server: h11 to read requests, httpx to call the provider."""
