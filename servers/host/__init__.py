"""What the hosts of both servers share, and the application between reading a request and writing its answer."""
