"""`python -m quoin`, as `quoin`; torchrun starts it so."""

from quoin.cli import main_and_exit

__all__: list[str] = []

if __name__ == "__main__":
    main_and_exit()
