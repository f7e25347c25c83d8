"""Floor 4: answers. Released numbers for people and programs: columns with errors, tables, files, pictures and words.

Everything here sees noisy numbers and public facts only. The rooms above, one for each kind of data, say what was asked
and how; this room shows, exports, draws and records it in one way, and what is expected before a release likewise.
"""

from defocus.answers.answer import PICKED, Answer, Released
from defocus.answers.columns import AnswerColumn, Tails
from defocus.answers.preview import Preview, PreviewColumn
from defocus.answers.rules import Effect, Rule

__all__ = ["PICKED", "Answer", "AnswerColumn", "Effect", "Preview", "PreviewColumn", "Released", "Rule", "Tails"]
