"""`gantry admin dead-letters`: reading them by cause, saving them, putting them back, discarding them."""
