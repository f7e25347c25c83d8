"""Per-example gradients, clipped and summed: one backward pass where possible, slower ways where needed, and said."""

from defocus.learning.gradients.gradients import Gradients, SlowGradientsWarning
from defocus.learning.gradients.layouts import Clipped, Rule

__all__ = ["Clipped", "Gradients", "Rule", "SlowGradientsWarning"]
