"""Forms: what an answer must look like, as the JSON schema that is stored with its question."""

from typing import Any

import msgspec

from watchbill.flow.values import Annotation


def schema_of(annotation: Annotation) -> dict[str, Any]:
    """Give the JSON schema of a type; TypeError if it has none."""
    return msgspec.json.schema(annotation, schema_hook=_schema)


def _schema(kind: Annotation) -> dict[str, Any]:
    if kind is object:
        return {}  # any JSON value
    raise NotImplementedError
