import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 7009,
  name: "Token Revocation",
  clauses: [
    {
      section: "2",
      rule: "The endpoint supports the revocation of refresh tokens.",
      tests: [
        "server/provider/revocation: revoking a user's access or refresh token immediately revokes the whole grant",
      ],
    },
    {
      section: "2.1",
      rule: "The request includes the client's credentials, which are verified, and the token must have been issued to that client.",
      tests: [
        "server/provider/revocation: another client can't revoke a token",
        "server/provider/revocation: the public client can't revoke another client's token",
      ],
    },
    {
      section: "2",
      rule: "Clients verify that the address of the endpoint uses https.",
      why: "applies to clients",
    },
  ],
};
