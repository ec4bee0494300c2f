"""Search for schedules by measured runs."""
