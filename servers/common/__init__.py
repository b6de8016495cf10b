"""What both servers share: command line, settings, bootstrap, the application, the host's effects, logs."""
