import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 9207,
  name: "Issuer Identification",
  clauses: [
    {
      section: "2",
      rule: "Authorization responses contain iss, including errors.",
      tests: [
        "server/provider/authorization-endpoint: an approval and a cancellation both return iss",
        "server/provider/authorization-endpoint: a request with ${what} redirects with ${error}, state and iss",
        "server/provider/prompt: prompt=none without a session gets login_required",
      ],
    },
    {
      section: "2",
      rule: "The issuer is an https URL without query and fragment.",
      tests: ["server/settings/config: an invalid ${name} is rejected in a sentence with its name"],
    },
    {
      section: "2.3",
      rule: "Clients can learn the issuer.",
      tests: ["server/provider/discovery: the metadata is JSON and names the exact issuer"],
    },
    {
      section: "2.3",
      rule: "The issuer in the metadata and iss are the same string.",
      tests: [
        "server/provider/discovery: the metadata is JSON and names the exact issuer",
        "server/provider/authorization-endpoint: an approval and a cancellation both return iss",
      ],
    },
    {
      section: "2.3",
      rule: "The metadata says that responses contain iss.",
      tests: ["server/provider/discovery: the metadata advertises the iss response parameter"],
    },
    {
      section: "2.4",
      rule: "An ID token from the authorization endpoint has the same issuer as the response.",
      why: "the authorization endpoint returns no ID tokens",
    },
  ],
};
