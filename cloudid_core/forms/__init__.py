"""Fields of requests and settings: types, defaults, rules, and what they mean together."""
