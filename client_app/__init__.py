"""The Flower ClientApp: handlers for the server's messages and the organisation's local store."""
