"""What a start does with the files of the last run."""
