"""Per-example gradients, clipped and summed: one backward pass where possible, slower ways where needed, and said."""

from defocus.learning.gradients.batches import Clipped, Rule
from defocus.learning.gradients.gradients import Gradients, SlowGradientsWarning

__all__ = ["Clipped", "Gradients", "Rule", "SlowGradientsWarning"]
