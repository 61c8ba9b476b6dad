"""The one loop: events in, instructions out. It performs no I/O and reads no clock."""
