"""Floor 0: every kind of error the user can see, and the checks of parameters.

::

    DefocusError
    ├── InvalidParameterError (ValueError)
    │   ├── EpsilonTooLargeError        a description asks a device for more than the device allows
    │   ├── FormulaOutOfRangeError      a textbook formula used where it is unsound
    │   ├── MismatchedDomainError       two things that must be about the same domain are not
    │   ├── MismatchedOracleError       local reports or counts made under another description
    │   ├── NotBitsError                a seed or a generator where random bits belong
    │   ├── OutOfDomainError            a value on a device outside of the domain; never quoted
    │   ├── SilentDeviceError           a description under which a device is silent about some values
    │   ├── NotShuffledError            amplification was asked for where nobody shuffles
    │   ├── NotDeclaredError            bounds or keys that a question needs and nobody declared
    │   ├── UnknownColumnError          a column that the table does not have
    │   ├── UnsuitableQuestionError     a question that a search for strings does not ask
    │   ├── UnsupportedSqlError         a construct of SQL that cannot be answered privately
    │   ├── WrongKindError              text where a number belongs, and the like
    │   ├── UnaccountedSamplingError    batches drawn in a way that no proven event describes
    │   ├── UnanswerableWorkloadError   a strategy does not determine the answers to a workload
    │   ├── UnmeasuredTablesError       marginals were asked of a release that did not measure them
    │   ├── UnfitModelError             a model, loss or optimizer that cannot be trained as it is
    │   │   └── DependentExamplesError  one example's loss depends on the others of its batch
    │   ├── WrongSensitivityError       a strategy was declared with a sensitivity it does not have
    │   └── UnfitDataError              data of the wrong type, shape or length; never quotes the data
    │       ├── NotExactError           fractional data where exact integers are needed
    │       └── TooFewUsersError        fewer users than a multi-message protocol counts on
    ├── AskedAgainError                 a device was asked twice where everybody is asked once
    ├── NoiseOverflowError (OverflowError)  a sample beyond 64-bit integers
    ├── UnsupportedEventError           an accountant cannot express an event
    ├── CannotCalibrateError            no parameter meets the budget, or the family is not monotone
    │   └── BudgetOutOfReachError       no parameter meets the budget
    ├── ExpressionError (ValueError)    an expression that could not be read
    ├── LedgerError
    │   ├── BudgetExceededError         requested, remaining, difference; nothing was charged
    │   ├── LedgerBusyError             someone else held it for longer than the timeout
    │   ├── LedgerMismatchError         opened with another unit, budget or data set
    │   ├── LedgerDamagedError          edited, truncated, rolled back or unreadable
    │   └── LedgerUnavailableError      cannot be reached, read or written
    ├── QuestionFailedError             a question failed after the charge, which stays
    ├── NotFinishedError                released, but HAVING, ORDER BY or a formula of SQL failed afterwards
    ├── ReleaseFailedError              sampling failed after the charge, which stays
    ├── NotRecordedError                charged and sampled, but the ledger could not note it
    ├── QualityNotReachedError          synthetic data, made and paid for, are worse than was asked for
    ├── ProtocolError                   a message that a protocol between parties does not allow
    ├── TooFewPartiesError              more parties dropped out than was agreed on, so there is no sum
    ├── SealError                       something sealed that does not open with this key
    ├── ShufflerUnavailableError        a shuffler that does not answer, or not as one
    ├── SourceError                     a table that cannot be opened, or a schema that cannot be used
    ├── DatasetFileError                a dataset file that is not understood
    ├── EngineError                     the engine failed while it computed; its text is not repeated
    ├── TrainingEndedError              a step past the last one that was charged
    ├── CheckpointError                 a checkpoint or its log damaged, missing, of another run, or in use
    ├── BranchedRunError                a step of a training run again, from other sums than before
    ├── ChangedModelError               a model or its optimizer changed in the middle of a training run
    ├── LostProcessError                another process of a training run is gone or silent; the charge stays
    ├── StepFailedError                 model or loss failed on private examples; what they said is withheld
    ├── StreamEndedError                a step past the last one that was charged
    ├── StreamStateError                a stream closed, handed over, already resumed or damaged
    ├── SignInError                     nobody has this name and password, link, session or token
    ├── TooManyAttemptsError            somebody guesses passwords or tokens
    ├── ForbiddenError                  a role on a server does not allow an action
    ├── NotFoundError                   a server has no such thing, or not for whoever asks
    ├── ConflictError                   a request is in a state in which this cannot be done
    ├── RecordsError                    the database of a server cannot be used
    ├── ServerError                     a server refused something, or cannot be reached
    ├── RequestWaitsError               a request on a server waits for somebody; nothing was charged yet
    ├── UnmadeReportError               a device made a report that its design does not know; it was not sent
    ├── UnreadableDescriptionError (ValueError)  not the description of a local oracle
    ├── UnknownTargetError (LookupError)  an audit was asked for by a name nothing has
    ├── UnknownQuestionError (AttributeError)  a graph has no question of this name
    └── MissingExtraError (ImportError)
"""

from defocus.errors import core, rooms
from defocus.errors.base import DefocusError, InvalidParameterError, MissingExtraError
from defocus.errors.checks import (
    Number,
    choice,
    count,
    finite,
    in_range,
    non_negative,
    positive,
    probability,
    storable,
    whole,
)
from defocus.errors.core import *
from defocus.errors.rooms import *

__all__ = [
    "DefocusError",
    "InvalidParameterError",
    "MissingExtraError",
    "Number",
    "choice",
    "count",
    "finite",
    "in_range",
    "non_negative",
    "positive",
    "probability",
    "storable",
    "whole",
]
__all__ += core.__all__
__all__ += rooms.__all__
