import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 9449,
  name: "DPoP",
  clauses: [
    {
      section: "4.3",
      rule: "A request has at most one DPoP header.",
      tests: [
        "server/provider/dpop: two proofs in one token request are rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "4.3",
      rule: "The header is a single, well-formed JWT.",
      tests: [
        "server/provider/dpop: a token request with ${what} as the proof is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "4.3",
      rule: "The proof has all required claims: jti, htm, htu, iat and, at a resource, ath.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "4.3",
      rule: "The typ is dpop+jwt.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "4.3",
      rule: "The algorithm is asymmetric, not none, and one that the server supports.",
      tests: [
        "server/provider/dpop: a token request with ${what} as the proof is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "4.3",
      rule: "The key in the header verifies the signature.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "server/provider/dpop: a token request with ${what} as the proof is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "4.3",
      rule: "The key in the header is not a private one.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "4.3",
      rule: "The htm is the method of the request.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "4.3",
      rule: "The htu is the URL of the request, without regard to query and fragment.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
        "resources/access/dpop-proof: ${target.name} accepts ${what}",
      ],
    },
    {
      section: "4.3",
      rule: "A nonce in the proof is one that the server provided.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
        "resources/access/dpop: a nonce expires after a few minutes, and a new one is offered before",
      ],
    },
    {
      section: "4.3",
      rule: "The proof was created recently, by its iat or its nonce.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
        "resources/access/dpop: ${target.name} accepts a proof with a nonce from a client with a wrong clock",
      ],
    },
    {
      section: "4.3",
      rule: "At a resource, the ath is the hash of the access token.",
      tests: ["resources/access/dpop-proof: ${target.name} rejects ${what}"],
    },
    {
      section: "4.3",
      rule: "At a resource, the key is the one that the access token is bound to.",
      tests: [
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
        "server/provider/dpop: a code is redeemed with a proof; its refresh token may be used with another key",
      ],
    },
    {
      section: "5",
      rule: "Only a valid proof is accepted in the header of a token request.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "server/provider/dpop: a token request with ${what} as the proof is rejected",
      ],
    },
    {
      section: "5",
      rule: "The token_type of a bound access token is DPoP.",
      tests: [
        "server/provider/dpop: a token requested with a proof is bound to its key, and introspection says so",
        "server/provider/workload-identity: openid-client binds the access token of a job to a key",
        "server/provider/identity-assertions: the token is bound to the key of a DPoP proof, which an organization may require",
      ],
    },
    {
      section: "5",
      rule: "A refresh token of a public client is bound to the key of its proof, which each refresh must prove.",
      tests: [
        "server/provider/dpop-refresh-tokens: the refresh token of a public client is bound to the key of its proof",
      ],
    },
    {
      section: "5.2",
      rule: "A client with dpop_bound_access_tokens gets no token without a proof.",
      tests: [
        "server/provider/document-assertions: a client whose document says that it always uses DPoP gets no token without a proof",
      ],
    },
    {
      section: "6",
      rule: "A resource server can tell whether a token is bound, and to which key.",
      tests: [
        "server/provider/dpop: a token requested with a proof is bound to its key, and introspection says so",
        "resources/access/dpop: ${target.name} rejects a bound token without the DPoP scheme",
        "resources/access/dpop: ${target.name} rejects a bearer token with the DPoP scheme",
      ],
    },
    {
      section: "6",
      rule: "A resource server ensures that the proof has the key of the token.",
      tests: ["resources/access/dpop-proof: ${target.name} rejects ${what}"],
    },
    {
      section: "6.1",
      rule: "The jkt is the base64url SHA-256 thumbprint of the key.",
      tests: [
        "server/provider/dpop: a token requested with a proof is bound to its key, and introspection says so",
      ],
    },
    {
      section: "6.2",
      rule: "The token_type of a bound token at introspection is DPoP.",
      tests: [
        "server/provider/dpop: a token requested with a proof is bound to its key, and introspection says so",
      ],
    },
    {
      section: "7",
      rule: "A request with a bound token also has a proof, with the hash of the token.",
      tests: ["resources/access/dpop-proof: ${target.name} rejects ${what}"],
    },
    {
      section: "7.1",
      rule: "A resource server gives no access unless the proof is there, is valid, and has the key of the token.",
      tests: [
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
        "resources/access/dpop: ${target.name} accepts a proof once",
        "server/provider/require-dpop: claims are read with a proof",
      ],
    },
    {
      section: "7.1",
      rule: "The scheme is not used in Proxy-Authorization or Proxy-Authenticate.",
      tests: ["conformance/rfc/9449: a bound token in Proxy-Authorization counts as no token"],
    },
    {
      section: "7.2",
      rule: "A bound token that is sent as a bearer token is rejected.",
      tests: [
        "resources/access/dpop: ${target.name} rejects a bound token without the DPoP scheme",
        "server/provider/require-dpop: claims are read with a proof",
      ],
    },
    {
      section: "8",
      rule: "Nonces can't be predicted.",
      why: "they are derived from a secret with HKDF, which a test can't tell from guessable ones",
    },
    {
      section: "8",
      rule: "A response has at most one DPoP-Nonce header.",
      tests: [
        "server/provider/dpop: a nonce of the token endpoint is valid at the resources, and the other way around",
        "server/provider/dpop: a client with a wrong clock gets a token with the nonce that it is offered",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "8",
      rule: "A request whose nonce is not a recent one of the server is rejected.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
        "resources/access/dpop: a nonce expires after a few minutes, and a new one is offered before",
      ],
    },
    {
      section: "10",
      rule: "A code that is bound by dpop_jkt is redeemed only with a proof of that key.",
      tests: ["server/provider/dpop: an authorization request may bind its code to a key"],
    },
    {
      section: "10.1",
      rule: "A proof in a pushed request is checked like any other.",
      tests: ["server/provider/dpop: a pushed request with an invalid proof is rejected"],
    },
    {
      section: "10.1",
      rule: "A proof in a pushed request binds the code like dpop_jkt.",
      tests: ["server/provider/dpop: a pushed request with a proof binds the code to its key"],
    },
    {
      section: "10.1",
      rule: "Both dpop_jkt and a proof are supported in pushed requests.",
      tests: [
        "server/provider/dpop: a pushed request may name the key of its code",
        "server/provider/dpop: a pushed request with a proof binds the code to its key",
      ],
    },
    {
      section: "10.1",
      rule: "A pushed request is rejected if its dpop_jkt is not the key of its proof.",
      tests: ["server/provider/dpop: a pushed request with a proof of another key than it names is rejected"],
    },
    {
      section: "11.1",
      rule: "Proofs are accepted only for a limited time after they were created.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
        "conformance/rfc/9449: a proof from a clock that is ahead is accepted once, even after a purge",
      ],
    },
    {
      section: "11.3",
      rule: "Once a client was given a nonce, its proofs without one are rejected.",
      deviation:
        "nonces help clients with a wrong clock and are never required; each proof is accepted once, within 5 minutes",
    },
    {
      section: "11.5",
      rule: "A JWT that was made for another purpose is rejected by its typ.",
      tests: [
        "server/provider/dpop: a token request with a proof that has ${what} is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
    {
      section: "11.6",
      rule: "Only secure asymmetric algorithms sign proofs, and never none.",
      tests: [
        "server/provider/dpop: the server and its resources list the same algorithms",
        "server/provider/dpop: a token request with ${what} as the proof is rejected",
        "resources/access/dpop-proof: ${target.name} rejects ${what}",
      ],
    },
  ],
};
