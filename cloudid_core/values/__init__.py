"""Values with a grammar: parsed once, where input arrives; the rest of the code relies on it."""
