import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 9126,
  name: "Pushed Authorization Requests",
  clauses: [
    {
      section: "2",
      rule: "The address of the endpoint uses https.",
      tests: [
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
      ],
    },
    {
      section: "2",
      rule: "The issuer, the token endpoint and the endpoint itself are accepted as audience of an assertion.",
      tests: [
        "server/provider/private-key-jwt: the issuer, the token endpoint and itself are audiences of the pushed authorization request endpoint",
      ],
    },
    {
      section: "2",
      rule: "The issuer and both endpoints are also accepted as audiences from clients that follow FAPI 2.0.",
      deviation: "clients that follow FAPI 2.0 may name the issuer only, as that profile requires",
    },
    {
      section: "2.1",
      rule: "A pushed request doesn't contain a request_uri.",
      tests: [
        "server/provider/pushed-authorization-requests: a pushed request with ${what} is rejected immediately",
      ],
    },
    {
      section: "2.1",
      rule: "The client authenticates as at the token endpoint.",
      tests: [
        "server/provider/client-authentication: a wrong secret in the header gets a Basic challenge at ${endpoint}",
        "server/provider/private-key-jwt: the code flow, a pushed request and the refresh work with a key",
      ],
    },
    {
      section: "2.1",
      rule: "A pushed request with a request_uri is rejected.",
      tests: [
        "server/provider/pushed-authorization-requests: a pushed request with ${what} is rejected immediately",
      ],
    },
    {
      section: "2.1",
      rule: "A pushed request is validated like an authorization request.",
      tests: [
        "server/provider/pushed-authorization-requests: a pushed request with ${what} is rejected immediately",
      ],
    },
    {
      section: "2.1",
      rule: "What can't be checked yet is checked at the authorization endpoint.",
      tests: [
        "server/provider/pushed-authorization-requests: prompt=none in a pushed request leads to no code without a session or consent",
      ],
    },
    {
      section: "2.2",
      rule: "A valid request gets the status 201 and a request_uri.",
      tests: [
        "server/provider/pushed-authorization-requests: a pushed request gets 201 and a request_uri that is valid for one minute",
      ],
    },
    {
      section: "2.2",
      rule: "A request_uri has a part that is generated at random and cannot be guessed.",
      tests: [
        "server/provider/pushed-authorization-requests: equal pushed requests get request_uris that are random throughout",
        "server/provider/pushed-authorization-requests: a pushed request gets 201 and a request_uri that is valid for one minute",
      ],
    },
    {
      section: "2.2",
      rule: "A request_uri works only for the client that pushed the request.",
      tests: ["server/provider/pushed-authorization-requests: another client can't use a pushed request"],
    },
    {
      section: "2.3",
      rule: "A client that has to sign request objects can push nothing else.",
      why: "request objects are not supported",
    },
    {
      section: "2.3",
      rule: "Its other requests get the status 400 and invalid_request.",
      why: "request objects are not supported",
    },
    {
      section: "3",
      rule: "With a request object, the parameters of the request are its claims.",
      why: "request objects are not supported",
    },
    {
      section: "3",
      rule: "A request object is decrypted, its signature is verified, and it names the client.",
      why: "request objects are not supported",
    },
    {
      section: "4",
      rule: "An expired request_uri is rejected.",
      tests: ["server/provider/pushed-authorization-requests: a pushed request expires after one minute"],
    },
    {
      section: "4",
      rule: "An authorization request with a request_uri is validated like any other.",
      tests: [
        "server/provider/pushed-authorization-requests: a client on the Free plan can neither push a request nor use one pushed before",
        "server/provider/pushed-authorization-requests: prompt=none in a pushed request leads to no code without a session or consent",
      ],
    },
    {
      section: "7.1",
      rule: "A request_uri has enough entropy.",
      tests: [
        "server/provider/pushed-authorization-requests: equal pushed requests get request_uris that are random throughout",
        "server/provider/pushed-authorization-requests: a pushed request gets 201 and a request_uri that is valid for one minute",
      ],
    },
    {
      section: "7.2",
      rule: "Only authenticated clients can push unregistered redirect URIs; linkgate accepts none.",
      tests: [
        "server/provider/pushed-authorization-requests: a pushed request with ${what} is rejected immediately",
        "server/provider/registered-clients: a registered client can push a request with its redirect URI, and with no other",
      ],
    },
  ],
};
