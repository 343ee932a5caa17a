import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 8725,
  name: "JWT Best Current Practices",
  clauses: [
    {
      section: "3.1",
      rule: "Only the algorithms that the server names are used.",
      tests: [
        "server/assertions/verify-jwt: a JWT is refused: ${name}",
        "server/provider/document-assertions: the only algorithm that a document allows is required",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "3.1",
      rule: "The algorithm in the header is the one that verifies the signature.",
      tests: [
        "server/provider/workload-trust: a token ${what} is refused as ${form}, without saying why",
        "server/provider/workload-keys: a token whose header has ${what} is refused",
        "server/provider/private-key-jwt: an unsigned assertion and one signed with the public key as a secret are refused",
      ],
    },
    {
      section: "3.1",
      rule: "A key that is published with an algorithm is used with no other.",
      tests: ["conformance/rfc/8725: a key that its issuer published for one algorithm verifies no other"],
    },
    {
      section: "3.1",
      rule: "An organization's key that names its algorithm is used with no other.",
      tests: ["server/provider/private-key-jwt: a key that names its algorithm verifies no other"],
    },
    {
      section: "3.2",
      rule: "Only algorithms that are current and secure enough are allowed.",
      tests: [
        "server/assertions/verify-jwt: a JWT is refused: ${name}",
        "server/provider/client-authentication: a client assertion signed with ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "3.2",
      rule: "Algorithms can be replaced.",
      tests: [
        "server/provider/private-key-jwt: a client with an ${alg} key gets, uses and revokes a token",
        "server/provider/private-key-jwt: the key may have any name in the assertion, and both keys of a rotation work",
      ],
    },
    {
      section: "3.3",
      rule: "Every signature is verified, and a JWT is rejected as a whole if that fails.",
      tests: [
        "server/provider/workload-trust: a token ${what} is refused as ${form}, without saying why",
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/auth/sso/forgery: at ${name}, an ID token with ${what} is rejected",
      ],
    },
    {
      section: "3.3",
      rule: "Both layers of a nested JWT are verified.",
      why: "nested JWTs are not supported",
    },
    {
      section: "3.5",
      rule: "Keys are random and long enough.",
      tests: [
        "server/credentials/public-keys: ${name} is refused",
        "server/provider/workload-keys: tokens of an issuer with ${what} are refused",
      ],
    },
    {
      section: "3.5",
      rule: "No password is the key of a MAC.",
      tests: [
        "server/provider/client-authentication: a client assertion signed with ${what} is rejected",
        "server/provider/workload-keys: tokens of an issuer with ${what} are refused",
      ],
    },
    {
      section: "3.7",
      rule: "Headers and claims are in UTF-8, and no other encoding is accepted.",
      tests: ["conformance/rfc/8725: an assertion in another encoding than UTF-8 is refused"],
    },
    {
      section: "3.8",
      rule: "The keys that verify a JWT belong to its issuer.",
      tests: [
        "server/provider/workload-trust: a token ${what} is refused as ${form}, without saying why",
        "server/provider/workload-trust: an issuer whose metadata names another one is refused",
        "server/provider/workload-keys: a token whose header has ${what} is refused",
      ],
    },
    {
      section: "3.8",
      rule: "The subject is valid for the issuer, or else the JWT is rejected.",
      tests: [
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/identity-assertions: an assertion is refused: ${name}",
      ],
    },
    {
      section: "3.9",
      rule: "ID tokens, which an issuer makes for several clients, have an audience.",
      tests: [
        "server/provider/openid-connect: an id_token is signed with a published key and names the client, user, organization and nonce",
      ],
    },
    {
      section: "3.9",
      rule: "A JWT whose audience is not this server is rejected.",
      tests: [
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
        "server/provider/identity-assertions: an assertion is refused: ${name}",
      ],
    },
    {
      section: "3.11",
      rule: "The typ of a nested JWT is in the inner one.",
      why: "nested JWTs are not supported",
    },
    {
      section: "3.12",
      rule: "No JWT of one kind is valid as another kind of the same issuer.",
      tests: [
        "server/provider/identity-assertions: an assertion is refused: ${name}",
        "server/provider/workload-trust: a token with ${what} is refused as ${form}",
        "resources/access/bearer: ${name} is rejected with invalid_token",
      ],
    },
  ],
};
