"""Published studies: their claims beside what comes out, a folder per publication."""
