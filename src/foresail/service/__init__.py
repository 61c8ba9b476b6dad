"""The live service: durable requests over HTTP, the daemon that serves them, and a page."""
