"""The dashboard: pages, REST and live sockets over one cluster. The one door to the brokers is `gateway`."""
