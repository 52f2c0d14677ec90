"""Words around a rubric and its data, by language; `strategies.score_prompt` reads them."""
