"""Floor 5: answers. Released numbers for people and programs: columns with errors, tables, files, pictures and words.

Everything here comes after a release, and sees noisy numbers and public facts only. The rooms above, one for each kind
of data, say what was asked and how; this room shows, exports, draws and records it in one way.
"""

from defocus.answers.columns import AnswerColumn

__all__ = ["AnswerColumn"]
