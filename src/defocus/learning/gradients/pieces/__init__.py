"""Per-example gradients of one parameter, as little of them as its norm and its clipped sum need."""

from defocus.learning.gradients.pieces.convolution import Convolution
from defocus.learning.gradients.pieces.direct import Direct
from defocus.learning.gradients.pieces.joining import joined
from defocus.learning.gradients.pieces.lookup import Lookup
from defocus.learning.gradients.pieces.outer import Outer
from defocus.learning.gradients.pieces.piece import Piece

__all__ = ["Convolution", "Direct", "Lookup", "Outer", "Piece", "joined"]
