"""Per-example gradients of one parameter, as little of them as its norm and its clipped sum need."""

from defocus.learning.gradients.pieces.convolution import Convolution
from defocus.learning.gradients.pieces.direct import Direct, Lookup
from defocus.learning.gradients.pieces.outer import Outer
from defocus.learning.gradients.pieces.piece import Piece
from defocus.learning.gradients.pieces.shared import joined

__all__ = ["Convolution", "Direct", "Lookup", "Outer", "Piece", "joined"]
