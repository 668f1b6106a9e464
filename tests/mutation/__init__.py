"""The parts of `make mutants`: what is changed (operators), how a change reaches a process without touching a file
(importing), which tests run a line (blocks, plugin, choice), and how they are run (forks)."""
