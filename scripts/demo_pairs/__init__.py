"""Builds the demo data set: labelled answer pairs whose better answer is known by construction."""
