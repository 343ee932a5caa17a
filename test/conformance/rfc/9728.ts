import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 9728,
  name: "Protected Resource Metadata",
  clauses: [
    {
      section: "2",
      rule: "The document has the identifier of the resource.",
      tests: [
        "resources/access/protected-resources: ${path} describes the resource whose URL it is derived from",
      ],
    },
    {
      section: "2",
      rule: "The address of the resource's keys uses https.",
      why: "the resources have no keys",
    },
    {
      section: "2",
      rule: "If there are keys for signatures and for encryption, each key states its use.",
      why: "the resources have no keys",
    },
    {
      section: "2",
      rule: "The algorithms of signed responses don't include none.",
      why: "the resources have no keys",
    },
    {
      section: "2.2",
      rule: "Signed metadata has a signature and names its issuer.",
      why: "signed metadata is not supported",
    },
    {
      section: "3",
      rule: "The document is at the well-known address, which is inserted between host and path of the resource.",
      tests: [
        "resources/access/protected-resources: ${path} describes the resource whose URL it is derived from",
        "resources/access/protected-resources: the metadata of MCP is served at the well-known URL derived from MCP_URL",
      ],
    },
    {
      section: "3",
      rule: "The suffix of the well-known address is a registered one.",
      tests: [
        "resources/access/protected-resources: ${path} describes the resource whose URL it is derived from",
      ],
    },
    {
      section: "3",
      rule: "An application specifies which suffix it uses.",
      why: "the documentation names the standard, whose suffix it is",
    },
    {
      section: "3.1",
      rule: "The document is requested with GET.",
      tests: [
        "resources/access/protected-resources: ${path} describes the resource whose URL it is derived from",
        "resources/access/protected-resources: ${path} answers HEAD without a body, and rejects methods that make changes",
      ],
    },
    {
      section: "3.1",
      rule: "The slash after the host of a resource with a path is removed before the insertion.",
      tests: [
        "resources/access/protected-resources: ${path} describes the resource whose URL it is derived from",
        "resources/access/protected-resources: the metadata of MCP is served at the well-known URL derived from MCP_URL",
      ],
    },
    {
      section: "3.2",
      rule: "A successful response has the status 200, and is a JSON object of the type application/json.",
      tests: [
        "resources/access/protected-resources: ${path} describes the resource whose URL it is derived from",
      ],
    },
    {
      section: "3.2",
      rule: "Parameters without values are omitted.",
      tests: [
        "resources/access/protected-resources: ${path} has neither empty lists nor members without a value",
      ],
    },
    {
      section: "3.3",
      rule: "The resource in the document is the one whose well-known address it has.",
      tests: [
        "resources/access/protected-resources: ${path} describes the resource whose URL it is derived from",
        "resources/access/protected-resources: the metadata of MCP is served at the well-known URL derived from MCP_URL",
      ],
    },
    {
      section: "3.3",
      rule: "The resource that a challenge of MCP leads to is the URL that was requested.",
      tests: [
        "resources/access/protected-resources: the challenge of ${path} names its resource's metadata",
        "server/hosts: ${host.name} connects with ${redirectUri}, refreshes and calls a tool",
      ],
    },
    {
      section: "3.3",
      rule: "The resource that a challenge of the API leads to is the URL that was requested.",
      deviation: "all paths of the API are one resource, `/v1`, and each challenge names it",
    },
    {
      section: "6",
      rule: "Strings are not normalized before they are compared.",
      why: "applies to the recipients of a document",
    },
    {
      section: "6",
      rule: "Strings are compared by their code points.",
      why: "applies to the recipients of a document",
    },
    {
      section: "7.1",
      rule: "TLS is supported.",
      why: "the proxy in front of the server terminates TLS",
    },
    {
      section: "7.1",
      rule: "TLS is configured as BCP 195 recommends.",
      why: "the proxy in front of the server terminates TLS",
    },
  ],
};
