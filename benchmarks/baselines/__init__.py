"""What the servers are compared with: the same job done with what many would use instead."""
