"""The service as an OpenID Connect issuer: it signs identity tokens that stand in for a client secret at the provider.

The provider fetches the issuer's documents, and believes a token whose issuer, subject and audience it trusts.

A signing key is stored before it is published, published one period before it signs, and kept until every token that it
signed has expired. So a reader that keeps the documents for their `max-age` knows the key of every token.
"""
