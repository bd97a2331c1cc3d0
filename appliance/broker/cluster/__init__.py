"""The broker among others: name servers, address server, slaves."""
