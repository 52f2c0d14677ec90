"""Prompt templates as data files."""
