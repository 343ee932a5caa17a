import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 7591,
  name: "Dynamic Client Registration",
  clauses: [
    {
      section: "2",
      rule: "The redirect URIs of a client are registered, and its codes go nowhere else.",
      tests: [
        "server/provider/registration: the response is uncached JSON that names what applies to the client",
        "server/provider/registered-clients: a loopback redirect URI matches with any port, and nothing else does",
      ],
    },
    {
      section: "2",
      rule: "A grant type is registered as the value of grant_type that the token endpoint takes for it.",
      tests: [
        "server/provider/registration: the response is uncached JSON that names what applies to the client",
        "server/provider/registered-clients: ${host} registers, connects on the real pages, refreshes, and calls a tool",
        "server/provider/registered-clients: a token request of a registered client with ${what} is refused with ${error}",
      ],
    },
    {
      section: "2",
      rule: "A response type is registered as the value of response_type that the authorization endpoint takes for it.",
      tests: [
        "server/provider/registration: the response is uncached JSON that names what applies to the client",
        "server/provider/registered-clients: ${host} registers, connects on the real pages, refreshes, and calls a tool",
      ],
    },
    {
      section: "2",
      rule: "A response doesn't have both jwks and jwks_uri.",
      tests: ["server/provider/registration: a client that registers with ${what} becomes a public one"],
    },
    {
      section: "2",
      rule: "Metadata that the server doesn't know is ignored.",
      tests: ["server/provider/registration: a client that registers with ${what} becomes a public one"],
    },
    {
      section: "2",
      rule: "A value in a trusted software statement overrides the same member of the request.",
      why: "no software statement is accepted",
    },
    {
      section: "2.2",
      rule: "The name is shown as it was registered, in any script, without assumptions about its language.",
      tests: [
        "server/provider/registered-clients: the consent page quotes the name, says that it is not verified, and warns of local apps",
        "server/provider/registration: a client may be called ${client_name}",
      ],
    },
    {
      section: "2.3",
      rule: "A software statement without a signature or an issuer is not accepted.",
      tests: ["server/provider/registration: a registration with ${what} is refused with ${code}"],
    },
    {
      section: "3",
      rule: "The endpoint accepts JSON that is sent with POST.",
      tests: [
        "server/provider/registration: the response is uncached JSON that names what applies to the client",
        "server/provider/registration: a registration must be JSON, and at most 16 KB",
        "server/provider/registration: other methods and spellings of the path are rejected",
      ],
    },
    {
      section: "3",
      rule: "The endpoint is protected by TLS.",
      tests: [
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
        "server/provider/registration: the metadata lists the registration endpoint, and public clients",
      ],
    },
    {
      section: "3.1.1",
      rule: "A server that supports software statements prefers their values to those of the request.",
      why: "no software statement is accepted",
    },
    {
      section: "3.2.1",
      rule: "The response has a client ID.",
      tests: [
        "server/provider/registration: the response is uncached JSON that names what applies to the client",
      ],
    },
    {
      section: "3.2.1",
      rule: "No two client IDs have the same secret.",
      why: "registered clients have no secret",
    },
    {
      section: "3.2.1",
      rule: "A response with a secret says when the secret expires.",
      why: "registered clients have no secret",
    },
    {
      section: "3.2.1",
      rule: "The response has all registered metadata, including what the server has chosen.",
      tests: [
        "server/provider/registration: the response is uncached JSON that names what applies to the client",
        "server/provider/registration: a client that registers with ${what} becomes a public one",
      ],
    },
    {
      section: "3.2.1",
      rule: "A software statement that was used is returned unchanged.",
      why: "no software statement is accepted",
    },
    {
      section: "3.2.1",
      rule: "Values that were taken from a software statement are also members of the response.",
      why: "no software statement is accepted",
    },
    {
      section: "3.2.2",
      rule: "An error response has an error code.",
      tests: ["server/provider/registration: a registration with ${what} is refused with ${code}"],
    },
    {
      section: "5",
      rule: "The endpoint is used over TLS only.",
      tests: [
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
        "server/provider/registration: the metadata lists the registration endpoint, and public clients",
      ],
    },
    {
      section: "5",
      rule: "TLS 1.2 is supported.",
      why: "the proxy in front of the server terminates TLS",
    },
    {
      section: "5",
      rule: "A client of a flow with redirects has to register its redirect URIs.",
      tests: [
        "server/provider/registration: a registration with ${what} is refused with ${code}",
        "server/provider/registered-clients: a loopback redirect URI matches with any port, and nothing else does",
      ],
    },
    {
      section: "5",
      rule: "A redirect URI is a website with TLS, one on the user's computer, or belongs to an app.",
      tests: [
        "server/provider/registration: a registration with ${what} is refused with ${code}",
        "server/clients/redirect-uris: ${JSON.stringify(uri.slice(0, 60))} is rejected when it is set",
        "server/clients/redirect-uris: ${uri} is accepted, and the code is sent there",
      ],
    },
    {
      section: "5",
      rule: "All metadata outside of a software statement counts as a claim of the client about itself.",
      tests: [
        "server/provider/registered-clients: the consent page quotes the name, says that it is not verified, and warns of local apps",
        'server/provider/registered-client-policy: an organization that allows ${allowed} ${isAllowed ? "offers" : "refuses"} consent for ${what}',
      ],
    },
    {
      section: "5",
      rule: "A valid software statement overrides the request, which could have been modified.",
      why: "no software statement is accepted",
    },
    {
      section: "5",
      rule: "The decision about a registration takes the entire request into account.",
      tests: ["server/provider/registration: a registration with ${what} is refused with ${code}"],
    },
  ],
};
