"""One module per command; each has `async def run(args) -> int`, the exit status."""
