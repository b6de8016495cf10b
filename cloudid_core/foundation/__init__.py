"""What every program stands on: the context, deadlines, bounded caches, mountable components, lifetimes."""
