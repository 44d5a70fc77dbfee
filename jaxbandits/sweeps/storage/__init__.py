"""What a sweep keeps on disk: finished chunks, results, and the time they took."""
