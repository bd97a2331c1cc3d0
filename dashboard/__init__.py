"""The dashboard: pages, REST and live sockets for one cluster. Only `gateway` connects to the brokers."""
