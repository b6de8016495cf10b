"""Routes: which program answers what, and what it is handed."""
