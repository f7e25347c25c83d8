"""Accountants: event to loss."""
