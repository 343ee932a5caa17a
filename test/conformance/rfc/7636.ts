import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 7636,
  name: "PKCE",
  clauses: [
    {
      section: "4.2",
      rule: "The server supports the method S256.",
      tests: [
        "server/provider/authorization-code: the verifier of one authorization can't redeem the code of another",
        "server/provider/discovery: S256 is the only code challenge method",
      ],
    },
    {
      section: "4.3",
      rule: "The authorization request has a code challenge.",
      tests: [
        "server/provider/authorization-code: a request with ${what} is rejected with invalid_request",
        "server/provider/authorization-code: a native app must also send a code challenge",
      ],
    },
    {
      section: "4.4",
      rule: "The code is bound to the challenge and the method of its request.",
      tests: [
        "server/provider/authorization-code: the verifier of one authorization can't redeem the code of another",
        "server/provider/authorization-code: ${what} is rejected and leaves the code valid",
      ],
    },
    {
      section: "4.4",
      rule: "The response doesn't disclose the challenge.",
      tests: [
        "conformance/rfc/7636: the code challenge can't be read from the authorization response",
        "server/provider/authorization-endpoint: a response to a request without a state contains none",
      ],
    },
    {
      section: "4.4.1",
      rule: "A request without a challenge gets invalid_request if the server requires one.",
      tests: [
        "server/provider/authorization-code: a request with ${what} is rejected with invalid_request",
        "server/provider/registered-clients: the authorization request of a registered client needs PKCE",
      ],
    },
    {
      section: "4.4.1",
      rule: "A request with a method that the server doesn't support gets invalid_request.",
      tests: ["server/provider/authorization-code: a request with ${what} is rejected with invalid_request"],
    },
    {
      section: "4.5",
      rule: "The token request has the code verifier.",
      tests: ["server/provider/authorization-code: ${what} is rejected and leaves the code valid"],
    },
    {
      section: "4.5",
      rule: "The verifier is checked with the method of the authorization request.",
      tests: ["conformance/rfc/7636: a token request can't choose another method"],
    },
    {
      section: "4.6",
      rule: "A verifier that matches gets tokens.",
      tests: [
        "server/provider/authorization-code: the verifier of one authorization can't redeem the code of another",
        "flow: an app authorized by a user can use the API for the chosen organization",
      ],
    },
    {
      section: "4.6",
      rule: "A verifier that doesn't match gets invalid_grant.",
      tests: [
        "server/provider/authorization-code: the verifier of one authorization can't redeem the code of another",
      ],
    },
    {
      section: "7.2",
      rule: "A plain challenge inside a code is encrypted.",
      why: "the method plain is not supported, and codes contain no challenge",
    },
  ],
};
