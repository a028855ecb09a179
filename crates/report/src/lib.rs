//! What a study looks like: terminal tables and plots, JSON, CSV, Markdown.
