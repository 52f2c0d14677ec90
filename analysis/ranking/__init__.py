"""Rankings from battles: ratings with intervals by prompt, what would sharpen them, comparisons."""
