"""Kernels that are tried: for each view linear, quadratic, and RBF of several widths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lokl.kernels import RBF, Kernel, Linear, Polynomial
from lokl.kernels.dictionaries import named_kernels

Kernels = dict[str, Kernel]

# Powers of two, as multiples of the reciprocal of the median squared distance.
LOW, HIGH, STEP = -4, 2, 2
# The least power of kernels that are not off centre: of wider ones, all values are nearly the same,
# and samples that lack a view lean to one side.
CENTRED = -2


@dataclass(frozen=True, eq=False)
class View:
    """Columns that belong together, as they come out of the preparation."""

    name: str | None  # None where there is only one
    columns: slice | None  # None for all; a list of numbers would be copied one by one
    complete: bool = True  # whether every training sample has it
    # How many units the distances of the view are made of.
    units: int = 1

    def linear(self) -> Kernels:
        return self._named({"linear": Linear().normalized("mean_diag")})

    def quadratic(self) -> Kernels:
        # Squared norms are about one half: gamma 2 gives linear and quadratic part like shares.
        kernel = Polynomial(2, gamma=2.0 / self.units).normalized("mean_diag")
        return self._named({"quadratic": kernel})

    def rbf(self, power: int) -> Kernels:
        return self._named({f"rbf(2^{power})": RBF(2.0**power / self.units)})

    def ladder(self, low: int = LOW) -> Kernels:
        """All kernels of the view together, RBF from a least power on."""
        found = {**self.linear(), **self.quadratic()}
        for power in range(low, HIGH + 1, STEP):
            found.update(self.rbf(power))
        return found

    def _named(self, kernels: Mapping[str, Kernel]) -> Kernels:
        return {
            name if self.name is None else f"{self.name}: {name}": (
                kernel if self.columns is None else kernel.on(self.columns)
            )
            for name, kernel in kernels.items()
        }


def views_of(names: Sequence[str], widths: Sequence[int], complete: Sequence[bool]) -> list[View]:
    """Views side by side, with so many columns each."""
    found, start = [], 0
    for name, width, whole in zip(names, widths, complete, strict=True):
        found.append(View(name, slice(start, start + width), whole))
        start += width
    return found


def together(views: Sequence[View]) -> View:
    """All columns of several views as one."""
    return View("all", None, all(view.complete for view in views), len(views))


def one_by_one(kernels: Any) -> list[Kernels]:
    """Kernels that a user has given, each alone."""
    return [{name: kernel} for name, kernel in named_kernels(kernels).items()]
