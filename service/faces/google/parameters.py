"""The query of a request: its own fields, and the parameters that all of Google's APIs have."""

from service.domain.errors import InvalidRequest, Path
from service.faces.http.key_fields import KeyField

Fields = list[tuple[str, str]]

KEY = KeyField("key", "$", "%24", "$.", "%24.", in_json=False)

# They don't change what an answer says, but `fields`, which would shorten it, and `callback`, for pages that know no
# CORS. The names also occur with `$` before them. Source: https://cloud.google.com/apis/docs/system-parameters.
_WITHOUT_EFFECT = frozenset(
    {
        *("key", "access_token", "oauth_token", "prettyPrint", "pp", "fields", "callback", "quotaUser", "userIp"),
        *("userProject", "trace", "upload_protocol", "uploadType", "xgafv"),
    }
)


def own_fields(fields: Fields) -> Fields:
    """Return the fields without those; raise `InvalidRequest` if one asks for an answer that is not JSON."""
    own = []
    for name, value in fields:
        if _bare(name) == "alt":
            if value.partition(";")[0] != "json":
                raise InvalidRequest("{path} is {value}", Path("alt"), value=value, allowed="json")
        elif _bare(name) not in _WITHOUT_EFFECT:
            own.append((name, value))
    return own


def _bare(name: str) -> str:
    return name.removeprefix("$").removeprefix(".")
