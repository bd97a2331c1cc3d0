"""What every feature's REST routes share: the guard, refusals, values of bodies."""
