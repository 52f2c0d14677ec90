"""Rubrics that come with the package, as TOML files; `dikast.strategies.rubric` reads them."""
