"""What people and programs may ask for, checked in one place."""
