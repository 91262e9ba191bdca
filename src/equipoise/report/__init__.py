"""Sections rendered to HTML, Markdown and JSON; this room knows nobody's content."""
