"""What every program is handed."""
