"""APP: the front hall. Builds the rooms around one store, starts in order, stops in reverse; what users hold."""
