"""Consumer groups over time: looks that all tabs share, where each is heading, why one is behind."""
