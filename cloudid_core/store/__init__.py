"""What is remembered: an ordered map of versioned, sealed entries, read one by one and written by one atomic commit."""
