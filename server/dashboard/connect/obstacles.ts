import type { Obstacle } from "./acceptance.ts";

/** Returns the sentence that says why an app can't connect, and what would change that. */
export function explain(obstacle: Obstacle, { app, organization }: Explained): string {
  switch (obstacle) {
    case "plan_required":
      return "Connecting apps requires the Growth or Premium plan.";
    case "local_server":
      return `${app} connects from its vendor’s servers, which can’t reach a server on localhost. It needs a public https address, which the setting \`BASE_URL\` names.`;
    case "documents_disabled":
      return `This server doesn’t accept ${app} by its metadata document. Its operator can change that with the setting \`CIMD\`.`;
    case "documents_disallowed":
      return `${organization} doesn’t accept ${app} by its metadata document. An owner or admin can change that.`;
    case "registration_disabled":
      return `${app} registers itself with the server, and registration is off. The server’s operator can turn it on with the setting \`DYNAMIC_REGISTRATION=stateless\`.`;
  }
}

type Explained = { app: string; organization: string };
