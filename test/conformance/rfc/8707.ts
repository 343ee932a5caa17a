import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 8707,
  name: "Resource Indicators",
  clauses: [
    {
      section: "2",
      rule: "A resource is an absolute URI.",
      tests: [
        'server/provider/resource-indicators: the resource ${resource.replace(base, "")} is rejected at every step and consumes neither code nor token',
        'resources/access/protected-resources: ${resource.replace(url, "")} is rejected as a resource with invalid_target',
      ],
    },
    {
      section: "2",
      rule: "A resource has no fragment.",
      tests: [
        'server/provider/resource-indicators: the resource ${resource.replace(base, "")} is rejected at every step and consumes neither code nor token',
      ],
    },
    {
      section: "2.2",
      rule: "The response states the scope of the token if it differs from the requested one.",
      tests: [
        "server/provider/scopes: a request with ${what}",
        "server/provider/scopes: an app of a user with the role ${role} that requests ${ALL} is granted ${granted}",
      ],
    },
  ],
};
