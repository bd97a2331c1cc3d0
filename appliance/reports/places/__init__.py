"""Where lakes are: in the data folder, in another one, or in a store that has no folders."""
