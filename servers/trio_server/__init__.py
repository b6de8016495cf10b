"""The trio server: h11 to read requests, httpcore to call the provider."""
