"""Values with a grammar: parsed once at the border, trusted everywhere behind it."""
