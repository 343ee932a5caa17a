"""Client credentials, code with PKCE, refresh, revocation and introspection with Authlib."""

import json
import os

from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session, OAuthError

ISSUER = os.environ["ISSUER"]
CLIENT = (os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"])
TOKEN_ENDPOINT = f"{ISSUER}/oauth/token"


def used(session):
    response = session.get(f"{ISSUER}/v1/organization")
    response.raise_for_status()
    return {"accessToken": session.token["access_token"], "organization": response.json()["id"]}


def is_active(session):
    response = session.introspect_token(
        f"{ISSUER}/oauth/introspect", token=session.token["access_token"]
    )
    response.raise_for_status()
    return response.json()["active"]


machine = OAuth2Session(*CLIENT, scope="links:read")
machine.fetch_token(TOKEN_ENDPOINT, grant_type="client_credentials")
client_credentials = used(machine)

session = OAuth2Session(
    *CLIENT,
    scope=os.environ["SCOPE"],
    redirect_uri=os.environ["REDIRECT_URI"],
    code_challenge_method="S256",
)
verifier = generate_token(48)
url, state = session.create_authorization_url(f"{ISSUER}/oauth/authorize", code_verifier=verifier)
print(url, flush=True)
session.fetch_token(
    TOKEN_ENDPOINT, authorization_response=input(), state=state, code_verifier=verifier
)
code = used(session)

session.refresh_token(TOKEN_ENDPOINT)
refresh = used(session)

user = is_active(session)
revocation = session.revoke_token(f"{ISSUER}/oauth/revoke", token=session.token["refresh_token"])
revocation.raise_for_status()
revoked = is_active(session)

try:
    session.fetch_token(TOKEN_ENDPOINT, code="unknown", code_verifier=verifier)
except OAuthError as refused:
    error = refused.error

print(
    json.dumps(
        {
            "clientCredentials": client_credentials,
            "code": code,
            "refresh": refresh,
            "error": error,
            "introspection": {"user": user, "revoked": revoked},
        }
    )
)
