"""HTTP/1.1 for both servers: reads requests out of bytes, writes answers, limits connections (RFC 9110, RFC 9112)."""
