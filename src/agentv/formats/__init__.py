"""Foreign spellings live here and nowhere else: one file a wire format, both ways where there is a writer."""
