"""A bundle as a record of the OpenDP deployments registry, with every field of its template."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from defocus.answers.rules import Effect
from defocus.ledger import Bundle

__all__ = ["registry_record", "registry_yaml"]

_UNKNOWN = "Not stated."
_TUNING = (
    "Bounds, keys and prices are declared before the data is read, or found privately at a price that is part of the"
    " parameters above."
)
_TRUST = (
    "The keeper of the data is trusted with the data, and to draw the noise that was charged. Readers, analysts and"
    " whoever they share results with are not trusted; analysts may collude, since one budget holds for all of them."
)


def registry_record(
    bundle: Bundle, *, stated: Mapping[str, Any] | None = None, curator: str = _UNKNOWN
) -> dict[str, Any]:
    """The record of a release, in the form of the registry's template; what a bundle cannot know is ``stated``.

    Args:
        bundle: the release. What is wrong with it is raised.
        stated: fields to fill in or replace, nested as in the record: ``{"basic": {"data_product_region": "Wales"}}``
            are fields of ``deployment``.
        curator: who publishes it.

    Reference:
        github.com/opendp/deployments-registry-data, ``tests/good_deployments/template.yaml``.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> home = examples.folder()
    >>> visits = examples.visits()
    >>> answer = visits.agg(people=dp.count_units()).release(epsilon=0.5, request="people")
    >>> bundle = answer.bundle(f"{home}/people.bundle", ledger=visits.ledger, key=f"{home}/key")
    >>> record = registry_record(bundle, curator="A hospital")
    >>> record["deployment"]["dp_variant"]["variant_name"], record["deployment"]["privacy_loss"]["privacy_parameters"]
    ('Pure DP', {'epsilon': 0.5})
    >>> visits.close()
    """
    facts = bundle.verify().require().facts
    kept = facts["value"] if isinstance(facts["value"], dict) else {}
    when, delta = str(facts["when"])[:10], facts.get("delta", 0)
    exact = [
        rule
        for rule, effect in zip(kept.get("rules", ()), kept.get("effects", ()), strict=False)
        if effect == str(Effect.EXACT)
    ]
    tuned = [f"Chosen by looking at raw data: {facts['not protected']}"] if "not protected" in facts else []
    deployment: dict[str, Any] = {
        "basic": {
            "name": f"{facts['data set']}: {facts['purpose']}",
            "data_curators": [{"data_curator_name": curator, "data_curator_type": _UNKNOWN}],
            "description": str(facts["question"]),
            "intended_use": str(facts["purpose"]),
            "data_product_type": "Summary statistics",
            "data_product_region": _UNKNOWN,
            "data_product_sector": _UNKNOWN,
            "publication_date": when,
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if delta else "Pure DP",
            "data_domain": f"All data sets of the declared columns and types of {facts['data set']}.",
            "unprotected_quantities": "; ".join([*exact, *tuned]) or "None in this release.",
        },
        "privacy_loss": {
            "privacy_unit": str(facts["protects"]),
            "privacy_unit_details": (f"Adjacent data sets differ in {facts['protects']}."),
            "number_of_privacy_units": 1,
            "privacy_parameters": {
                **({"epsilon": facts["epsilon"]} if "epsilon" in facts else {}),
                **({"delta": delta} if delta else {}),
            },
            "privacy_parameters_details": (
                f"For this release alone, by the tightest accountant, from the event {facts['noise']}. All releases"
                f" about the same persons together are held under {facts['budget']} by one ledger."
            ),
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "Noise is added where the data is kept, before anything is shown.",
            "trust_assumptions": _TRUST,
            "actors": f"Asked by {facts['asked by']}. Approved by {facts.get('approved by', 'a rule of the keeper')}.",
            "release_type": "Many releases",
            "release_type_details": "Every release is charged to one ledger, which refuses what exceeds its budget.",
            "data_source_type": "Static",
            "data_source_type_details": "The ledger knows the data by a commitment; a new version is an entry.",
            "access_type": "Interactive",
            "access_type_details": "The budget is that of the data set, whoever asks: no two analysts add up to more.",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": "; ".join([_TUNING, *tuned]),
            "mechanisms": (
                f"{facts['noise']}. Noise is drawn as integers with an exact law, so no float decides an outcome; sums"
                f" are exact integers on a declared grid. Software: {facts['software']}. How long a question takes is"
                " not hidden."
            ),
            "composition": "One event for the whole release; a filter composes releases, also adaptive ones.",
            "post_processing": "; ".join(kept.get("processing", ())) or "Scaling and rounding.",
            "justification": _UNKNOWN,
            "utility": _utility(kept),
            "additional_information": (
                f"Entry of the ledger: {facts['ledger']}. Signed by {facts['key']}; `defocus verify` checks it offline."
            ),
        },
        "administrative": {
            "evidence_sources": {
                "bundle": {
                    "evidence_source_type": "Signed bundle",
                    "article": {
                        "title": f"Signed release of {facts['data set']}: {facts['purpose']}",
                        "note": f"SHA-256 of the file: {sha256(bundle.text.encode()).hexdigest()}",
                        "year": when[:4],
                    },
                }
            },
            "status": "Draft",
            "registry_authors": [curator],
            "tier": 3,
        },
    }
    slug = re.sub(r"[^a-z0-9]+", "-", f"{facts['data set']} {facts['purpose']} {when[:4]}".lower()).strip("-")
    return {"url_slug": slug[:80], "deployment": _merged(deployment, stated or {})}


def registry_yaml(record: Mapping[str, Any]) -> str:
    """A record as YAML: texts in double quotes, so that nothing in them is taken for something else.

    >>> print(registry_yaml({"a": {"b": ["c", 1]}, "d": {}}), end="")
    a:
      b:
        - "c"
        - 1
    d: {}
    """
    return "".join(_lines(record, 0))


def _lines(value: Any, depth: int) -> list[str]:
    pad, made = "  " * depth, []
    pairs = (
        [(f"{key}:", each) for key, each in value.items()] if isinstance(value, Mapping) else [("-", x) for x in value]
    )
    for head, each in pairs:
        if isinstance(each, Mapping | list) and each:
            made += [f"{pad}{head}\n", *_lines(each, depth + 1)]
        else:
            made.append(f"{pad}{head} {json.dumps(each, ensure_ascii=True)}\n")
    return made


def _merged(fields: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    both = {**fields, **stated}
    return {
        name: _merged(fields[name], each) if isinstance(fields.get(name), dict) and isinstance(each, Mapping) else each
        for name, each in both.items()
    }


def _utility(kept: Mapping[str, Any]) -> str:
    """How exact each column is, in words."""
    said = []
    for column in kept.get("columns", ()):
        errors = [float(x) for x in column["errors"]]
        if errors and column.get("error_of", True):
            said.append(f"{column['name']}: standard error from {min(errors):.3g} to {max(errors):.3g} by group")
    return "; ".join(said) or _UNKNOWN
