import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 7523,
  name: "JWTs as grants and client authentication",
  clauses: [
    {
      section: "2.1",
      rule: "As a grant, the assertion is a single JWT.",
      tests: [
        "server/provider/workload-trust: repeated assertions are refused",
        "server/provider/workload-trust: the assertion ${JSON.stringify(assertion.slice(0, 30))} is an invalid grant",
      ],
    },
    {
      section: "2.2",
      rule: "As client authentication, the assertion is a single JWT.",
      tests: [
        "server/provider/private-key-jwt: two assertions in one request are refused, and both can still be used",
        "server/provider/private-key-jwt: malformed assertions are refused",
      ],
    },
    {
      section: "3",
      rule: "The JWT is validated before it has an effect: no access token is issued for an invalid one.",
      tests: [
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/identity-assertions: an assertion is refused: ${name}",
      ],
    },
    {
      section: "3",
      rule: "It has an issuer.",
      tests: [
        "server/provider/workload-trust: a token ${what} is refused as ${form}, without saying why",
        "server/assertions/verify-jwt: a JWT is refused: ${name}",
      ],
    },
    {
      section: "3",
      rule: "Issuers are compared character by character.",
      tests: [
        "server/provider/workload-trust: a token ${what} is refused as ${form}, without saying why",
        "server/assertions/verify-jwt: a JWT is refused: ${name}",
      ],
    },
    {
      section: "3",
      rule: "It has a subject.",
      tests: [
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
        "server/provider/identity-assertions: an assertion is refused: ${name}",
      ],
    },
    {
      section: "3",
      rule: "As client authentication, the subject is the client ID.",
      tests: [
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/private-key-jwt: client_id may be sent beside the assertion, and must be the same client",
      ],
    },
    {
      section: "3",
      rule: "The subject of a workload's token, sent as client authentication, is the client ID.",
      deviation:
        "the tokens of workloads name their own subject, which a trust rule of the client must match",
    },
    {
      section: "3",
      rule: "It names this server as its audience, or else it is rejected.",
      tests: [
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/identity-assertions: an assertion is refused: ${name}",
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
      ],
    },
    {
      section: "3",
      rule: "Audiences are compared character by character.",
      tests: ["server/provider/workload-trust: a token with ${what} is refused as ${form}"],
    },
    {
      section: "3",
      rule: "It has an expiry.",
      tests: [
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
      ],
    },
    {
      section: "3",
      rule: "It is rejected once it has expired, but for the skew of clocks.",
      tests: [
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
        "server/provider/workload-identity: a clock that differs by up to 30 seconds is accepted",
      ],
    },
    {
      section: "3",
      rule: "It is rejected before the time from which it is valid.",
      tests: [
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
      ],
    },
    {
      section: "3",
      rule: "It is signed or has a MAC.",
      tests: [
        "server/provider/private-key-jwt: an unsigned assertion and one signed with the public key as a secret are refused",
        "server/provider/workload-trust: a token ${what} is refused as ${form}, without saying why",
      ],
    },
    {
      section: "3",
      rule: "It is rejected if the signature is invalid.",
      tests: [
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/workload-trust: a token ${what} is refused as ${form}, without saying why",
        "server/assertions/verify-jwt: a JWT is refused: ${name}",
      ],
    },
    {
      section: "3",
      rule: "It is rejected if it is not a valid JWT for any other reason.",
      tests: [
        "server/provider/private-key-jwt: malformed assertions are refused",
        "server/provider/workload-keys: a token whose header has ${what} is refused",
        "server/assertions/verify-jwt: a JWT is refused: ${name}",
      ],
    },
    {
      section: "3.1",
      rule: "Client credentials that are sent beside a grant are verified.",
      tests: [
        "server/provider/identity-assertions: the client must authenticate",
        "server/provider/workload-trust: an assertion beside a secret is refused",
      ],
    },
    {
      section: "3.1",
      rule: "The error for an invalid grant is invalid_grant.",
      tests: [
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
        "server/provider/workload-trust: the assertion ${JSON.stringify(assertion.slice(0, 30))} is an invalid grant",
        "server/provider/identity-assertions: an assertion is refused: ${name}",
      ],
    },
    {
      section: "3.2",
      rule: "The error for invalid client authentication is invalid_client.",
      tests: [
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/private-key-jwt: malformed assertions are refused",
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
      ],
    },
    {
      section: "5",
      rule: "RS256 is supported.",
      tests: [
        "server/provider/private-key-jwt: a client with an ${alg} key gets, uses and revokes a token",
        "server/provider/workload-identity: a job sends its token as ${form} and gets an access token for 15 minutes",
      ],
    },
  ],
};
