"""The report of a run as one page: sections, figures, and the file they make."""
