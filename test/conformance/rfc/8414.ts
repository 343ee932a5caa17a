import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 8414,
  name: "Authorization Server Metadata",
  clauses: [
    {
      section: "2",
      rule: "The document has the issuer: an https URL without query and fragment.",
      tests: [
        "server/provider/discovery: the metadata is JSON and names the exact issuer",
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
      ],
    },
    {
      section: "2",
      rule: "The document has the authorization endpoint.",
      tests: [
        "server/provider/discovery: every advertised endpoint exists, and no other endpoint is advertised",
      ],
    },
    {
      section: "2",
      rule: "The document has the token endpoint.",
      tests: [
        "server/provider/discovery: every advertised endpoint exists, and no other endpoint is advertised",
      ],
    },
    {
      section: "2",
      rule: "The address of the keys uses https.",
      tests: [
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
      ],
    },
    {
      section: "2",
      rule: "If there are keys for signatures and for encryption, each key states its use.",
      why: "there are no keys for encryption",
    },
    {
      section: "2",
      rule: "The document has the supported response types.",
      tests: [
        "server/provider/discovery: code is the only response type, and the implicit and password grants are not supported",
      ],
    },
    {
      section: "2",
      rule: "With private_key_jwt at the token endpoint, its algorithms are listed.",
      tests: [
        "server/provider/discovery: each endpoint that accepts client assertions lists their algorithms, and never none",
      ],
    },
    {
      section: "2",
      rule: "The algorithms of the token endpoint don't include none.",
      tests: [
        "server/provider/discovery: each endpoint that accepts client assertions lists their algorithms, and never none",
      ],
    },
    {
      section: "2",
      rule: "With private_key_jwt at the revocation endpoint, its algorithms are listed.",
      tests: [
        "server/provider/discovery: each endpoint that accepts client assertions lists their algorithms, and never none",
      ],
    },
    {
      section: "2",
      rule: "The algorithms of the revocation endpoint don't include none.",
      tests: [
        "server/provider/discovery: each endpoint that accepts client assertions lists their algorithms, and never none",
      ],
    },
    {
      section: "2",
      rule: "With private_key_jwt at the introspection endpoint, its algorithms are listed.",
      tests: [
        "server/provider/discovery: each endpoint that accepts client assertions lists their algorithms, and never none",
      ],
    },
    {
      section: "2",
      rule: "The algorithms of the introspection endpoint don't include none.",
      tests: [
        "server/provider/discovery: each endpoint that accepts client assertions lists their algorithms, and never none",
      ],
    },
    {
      section: "2.1",
      rule: "Signed metadata has a signature and names its issuer.",
      why: "signed metadata is not supported",
    },
    {
      section: "3",
      rule: "The document is at the well-known path, which is inserted between host and path of the issuer.",
      tests: ["server/provider/discovery: the metadata is JSON and names the exact issuer"],
    },
    {
      section: "3",
      rule: "The document is served over https.",
      tests: [
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
        "server/http/https: every response over https carries HSTS, also errors",
      ],
    },
    {
      section: "3",
      rule: "The suffix of the well-known path is a registered one.",
      tests: ["server/provider/discovery: the metadata is JSON and names the exact issuer"],
    },
    {
      section: "3",
      rule: "An application specifies which suffix it uses.",
      why: "the documentation names it",
    },
    {
      section: "3.1",
      rule: "The document is requested with GET.",
      tests: [
        "server/provider/discovery: the metadata is JSON and names the exact issuer",
        "server/provider/json-errors: ${what} gets ${status} in JSON for every Accept header",
      ],
    },
    {
      section: "3.1",
      rule: "The slash at the end of an issuer with a path is removed before the insertion.",
      why: "the issuer has no path",
    },
    {
      section: "3.2",
      rule: "A successful response has the status 200, and is a JSON object of the type application/json.",
      tests: ["server/provider/discovery: the metadata is JSON and names the exact issuer"],
    },
    {
      section: "3.2",
      rule: "Members without elements are omitted.",
      tests: ["server/provider/discovery: the metadata has neither empty lists nor members without a value"],
    },
    {
      section: "3.3",
      rule: "The issuer in the document is the one whose well-known address it has.",
      tests: [
        "server/provider/discovery: the metadata is JSON and names the exact issuer",
        "resources/access/protected-resources: ${path} names an authorization server whose metadata has the same issuer",
        "processes/metadata: every URL in the metadata has the common base URL",
      ],
    },
    {
      section: "3.3",
      rule: "The copies of the metadata at the path and the host of the MCP server name the identifier that their address is built from.",
      deviation: "the copy for clients that take the MCP server for the issuer names the real one",
    },
    {
      section: "4",
      rule: "Strings are not normalized before they are compared.",
      why: "applies to the recipients of a document",
    },
    {
      section: "4",
      rule: "Strings are compared by their code points.",
      why: "applies to the recipients of a document",
    },
    {
      section: "6.1",
      rule: "TLS is supported.",
      why: "the proxy in front of the server terminates TLS",
    },
    {
      section: "6.1",
      rule: "TLS 1.2 is supported.",
      why: "the proxy in front of the server terminates TLS",
    },
    {
      section: "6.1",
      rule: "The document is protected by a cipher suite with confidentiality and integrity.",
      why: "the proxy in front of the server terminates TLS",
    },
  ],
};
