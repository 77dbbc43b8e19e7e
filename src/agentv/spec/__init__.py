"""From what people write to what runs, with every mistake found before anything does."""
