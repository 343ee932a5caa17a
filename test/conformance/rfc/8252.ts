import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 8252,
  name: "OAuth 2.0 for Native Apps",
  clauses: [
    {
      section: "6",
      rule: "PKCE is supported for public native apps.",
      tests: [
        "server/provider/registered-clients: ${host} registers, connects on the real pages, refreshes, and calls a tool",
        "server/provider/registered-clients: the authorization request of a registered client needs PKCE",
        "server/provider/authorization-code: a native app must also send a code challenge",
      ],
    },
    {
      section: "7",
      rule: "Native apps may use private-use schemes, https URLs and loopback URLs as redirect URIs.",
      tests: [
        "server/clients/redirect-uris: ${uri} is accepted, and the code is sent there",
        "server/provider/authorization-endpoint: a redirect URI with a private-use scheme receives the code",
      ],
    },
    {
      section: "7.3",
      rule: "A loopback redirect URI may have any port in the request.",
      tests: [
        "server/provider/redirect-uri-matching: any port matches for each name of the loopback interface",
        "server/provider/registered-clients: a loopback redirect URI matches with any port, and nothing else does",
      ],
    },
    {
      section: "8.4",
      rule: "Whether a client is public is recorded when it registers.",
      tests: [
        "server/provider/registration: a client that registers with ${what} becomes a public one",
        "server/provider/registered-clients: a public client can't introspect its own token",
      ],
    },
    {
      section: "8.4",
      rule: "Redirect URIs are registered completely, with their path.",
      tests: [
        "server/provider/registration: a registration with ${what} is refused with ${code}",
        "server/clients/redirect-uris: ${JSON.stringify(uri.slice(0, 60))} is rejected when it is set",
        "server/provider/redirect-uri-matching: an https redirect URI matches only as it is registered, also without a path",
      ],
    },
    {
      section: "8.4",
      rule: "A redirect URI that differs from the registered one is rejected, in more than the port for loopback.",
      tests: [
        "server/provider/redirect-uri-matching: the unregistered ${JSON.stringify(uri)} is rejected without a redirect",
        "server/provider/redirect-uri-matching: the loopback URI ${uri}, which differs in more than its port, is rejected",
        "server/provider/registered-clients: a loopback redirect URI matches with any port, and nothing else does",
      ],
    },
    {
      section: "8.5",
      rule: "A secret that every copy of an app contains proves nothing, and its client is treated as public.",
      tests: [
        "server/provider/registration: a client that registers with ${what} becomes a public one",
        "server/provider/registered-clients: a token request of a registered client with ${what} is refused with ${error}",
        "server/clients/client-metadata-documents: a document ${what} is rejected, and not fetched again by the next request",
      ],
    },
  ],
};
