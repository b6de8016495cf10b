"""Service and batch tokens: made at login or by another token, checked at every request, renewed and revoked."""
