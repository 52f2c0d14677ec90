"""Load harness: every performance claim of the project comes from here, as a ratio in one run."""
