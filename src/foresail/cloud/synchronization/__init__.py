"""What waiting for each other costs workers that are not equally fast."""
