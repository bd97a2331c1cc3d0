"""Connect an application: four ticks, a program in its language, and what is wrong."""
