"""Statistics, held against other libraries and against what is known."""
