"""What both servers share: command line, settings, bootstrap, the host's effects, the HTTP wire, logs."""
