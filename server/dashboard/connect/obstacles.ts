import type { Obstacle } from "./acceptance.ts";

/** Returns the sentences that say why a host can't connect, and what would change that; backticks mark code. */
export function explain(obstacle: Obstacle, organization: string): string {
  return SENTENCES[obstacle].replace("{organization}", () => organization);
}

const SENTENCES: Record<Obstacle, string> = {
  plan_required: "Connecting AI clients requires the Growth or Premium plan.",
  local_server:
    "This client connects from its vendor’s servers, which can’t reach a server on localhost. The server needs a public https address, in its setting `BASE_URL`.",
  dpop_required:
    "{organization} requires DPoP, which this client isn’t known to support. An owner can change that under API access.",
  documents_disabled:
    "This client identifies itself by a metadata document, which this server doesn’t accept. The server’s operator can change that with the setting `CIMD`.",
  not_allowed: "{organization} doesn’t allow this client. An owner or admin can change that under Apps.",
  registration_disabled:
    "This client registers itself with the server, and registration is off. The server’s operator can turn it on with the setting `DYNAMIC_REGISTRATION=stateless`.",
  unknown_client:
    "This server accepts known AI clients only. The server’s operator can change that with the settings `CIMD=any` and `DYNAMIC_REGISTRATION=stateless`.",
};
