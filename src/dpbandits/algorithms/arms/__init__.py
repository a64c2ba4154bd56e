"""A few arms: index, memory and batches as values, under central, shuffle and local trust."""
