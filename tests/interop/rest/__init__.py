"""Clients that generators make of REST's document."""
