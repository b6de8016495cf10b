"""The provider, sans IO: builds requests to the cloud's HTTP interfaces and reads their answers."""
