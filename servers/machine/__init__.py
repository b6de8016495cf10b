"""What the machine offers: its disk, its memory, its standard streams, its identity."""
