"""Public descriptions of local randomisers: everything that a client and a server must agree on."""

from defocus.local.designs.categorical import KRR, DBitFlip, Hadamard, SubsetSelection
from defocus.local.designs.changing import Changing, changing
from defocus.local.designs.design import VERSION, Categorical, Describes, Design, Frequency, design_of
from defocus.local.designs.geometry_response import GeometryResponse
from defocus.local.designs.hashing import CountMeanSketch, HadamardSketch, LocalHashing
from defocus.local.designs.numeric import Numeric
from defocus.local.designs.rappor import Rappor
from defocus.local.designs.registry import NAMES, NUMERIC_NAMES, design, from_json, numeric, to_json
from defocus.local.designs.unary import Unary

__all__ = [
    "KRR",
    "NAMES",
    "NUMERIC_NAMES",
    "VERSION",
    "Categorical",
    "Changing",
    "CountMeanSketch",
    "DBitFlip",
    "Describes",
    "Design",
    "Frequency",
    "GeometryResponse",
    "Hadamard",
    "HadamardSketch",
    "LocalHashing",
    "Numeric",
    "Rappor",
    "SubsetSelection",
    "Unary",
    "changing",
    "design",
    "design_of",
    "from_json",
    "numeric",
    "to_json",
]
