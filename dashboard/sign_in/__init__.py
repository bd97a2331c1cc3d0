"""Signing in with an OpenID Connect provider: authorization code with PKCE, by Authlib. Off without oidc_issuer."""
