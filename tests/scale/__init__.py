"""The recipes of docs/scale-out.md, run as they are printed there."""
