"""How good any model is on private rows: one noisy table of outcomes, charged once, and all that follows from it."""

from defocus.learning.evaluation.answer import EvaluationAnswer
from defocus.learning.evaluation.choice import ModelChoice, choose
from defocus.learning.evaluation.question import Evaluation, evaluate

__all__ = ["Evaluation", "EvaluationAnswer", "ModelChoice", "choose", "evaluate"]
