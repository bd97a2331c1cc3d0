"""What every answer shares: security headers, error pages, where a request comes from."""
