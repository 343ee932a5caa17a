import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 9457,
  name: "Problem Details",
  clauses: [
    {
      section: "3.1.2",
      rule: "The status in the problem is that of the response.",
      tests: [
        "resources/http/methods: 404 and 405 responses of the API are complete problems",
        "resources/access/bearer: ${name} is rejected with invalid_token",
        "server/http/raw-requests: an unknown path of ${part} is a complete problem",
      ],
    },
    {
      section: "4",
      rule: "Each type of problem is documented with its URI and the status that it has.",
      tests: [
        "server/docs/page: every error code is documented at its type",
        "server/docs/page: every error code of the API is documented with its status",
        "server/docs/page: an error response links to its code",
      ],
    },
    {
      section: "4",
      rule: "Each type of problem is documented with a title.",
      why: "the title is the phrase of the status, as HTTP defines it",
    },
  ],
};
