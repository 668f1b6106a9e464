"""What recipes share: their options, the catalogue of them, and the ways to start, resume, repeat and open a run."""
