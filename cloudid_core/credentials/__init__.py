"""Who a mount is to its provider."""
