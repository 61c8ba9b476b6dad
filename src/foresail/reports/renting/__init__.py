"""The reports on what to own, reserve and rent, and which jobs wait."""
