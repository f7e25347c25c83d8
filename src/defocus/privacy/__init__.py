"""The algebra of privacy."""
