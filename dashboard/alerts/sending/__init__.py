"""A notice on its way: mail, webhooks and chats, and how each attempt went."""
