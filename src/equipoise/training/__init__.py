"""One loop; a method is a step."""
