"""What a simulated cloud consists of: the directory, machines, role assignments, and how the world is at first."""
