"""What this node knows of itself, and what health can say is wrong."""
