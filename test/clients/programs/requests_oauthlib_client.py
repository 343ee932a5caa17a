"""Client credentials, code with PKCE, refresh and revocation with requests-oauthlib."""

import json
import os

import requests
from oauthlib.oauth2 import BackendApplicationClient, InvalidGrantError, WebApplicationClient
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

ISSUER = os.environ["ISSUER"]
CLIENT_ID = os.environ["CLIENT_ID"]
TOKEN_ENDPOINT = f"{ISSUER}/oauth/token"

auth = HTTPBasicAuth(CLIENT_ID, os.environ["CLIENT_SECRET"])


def used(session):
    response = session.get(f"{ISSUER}/v1/organization")
    response.raise_for_status()
    return {"accessToken": session.token["access_token"], "organization": response.json()["id"]}


machine = OAuth2Session(client=BackendApplicationClient(CLIENT_ID, scope=["links:read"]))
machine.fetch_token(TOKEN_ENDPOINT, auth=auth)
client_credentials = used(machine)

client = WebApplicationClient(CLIENT_ID)
verifier = client.create_code_verifier(64)
challenge = client.create_code_challenge(verifier, "S256")
# Without prompt=consent, offline_access is not granted. This library would report that as a changed scope.
scope = [name for name in os.environ["SCOPE"].split() if name != "offline_access"]
session = OAuth2Session(client=client, redirect_uri=os.environ["REDIRECT_URI"], scope=scope)
url, _ = session.authorization_url(
    f"{ISSUER}/oauth/authorize", code_challenge=challenge, code_challenge_method="S256"
)
print(url, flush=True)
# The session compares the state.
session.fetch_token(
    TOKEN_ENDPOINT, authorization_response=input(), auth=auth, code_verifier=verifier
)
code = used(session)

session.refresh_token(TOKEN_ENDPOINT, auth=auth)
refresh = used(session)

url, headers, body = client.prepare_token_revocation_request(
    f"{ISSUER}/oauth/revoke", session.token["refresh_token"], token_type_hint="refresh_token"
)
requests.post(url, headers=headers, data=body, auth=auth).raise_for_status()

try:
    session.fetch_token(TOKEN_ENDPOINT, code="unknown", auth=auth, code_verifier=verifier)
except InvalidGrantError as refused:
    error = refused.error

print(
    json.dumps(
        {"clientCredentials": client_credentials, "code": code, "refresh": refresh, "error": error}
    )
)
