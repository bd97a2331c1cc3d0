"""What people and programs may ask for, checked in one place: pages and REST validate with the same forms."""
