"""Lets in whoever knows the word."""

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> dict[str, str]:
    """Tell who asks."""
    if headers.get(b"x-api-key") != b"open-sesame":
        raise Auth.exceptions.HTTPException(status_code=401, detail="that is not the word")
    return {"identity": "tester"}
