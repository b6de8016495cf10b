"""What trio and asyncio share: the few words of an event loop, Ctrl-C, lines that come seldom."""
