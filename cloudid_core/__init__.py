"""cloudid: a machine's cloud identity turned into access, as a sans-IO library."""
