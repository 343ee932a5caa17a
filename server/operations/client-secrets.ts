import { z } from "zod";
import { MANAGERS } from "../../resources/access/scopes.ts";
import { found, notFound } from "../../resources/http/problem.ts";
import { toJson } from "../../resources/http/to-json.ts";
import { invalidField } from "../../resources/http/validate.ts";
import { CLIENT, clientId, compromised, onClient, refuseConflict, revokesAll } from "./client-common.ts";
import { onOrganization } from "./operation.ts";
import { refusal } from "./problem-codes.ts";
import { timestamp } from "./schemas.ts";

const HOUR_MS = 60 * 60 * 1000;
const DEFAULT_OVERLAP_HOURS = 24;
const MAX_OVERLAP_HOURS = 168;
const OVERLAP = `must be 0 to ${MAX_OVERLAP_HOURS} hours`;

const rotationSchema = z.object({
  client_id: clientId,
  client_secret: z.string().describe("The new secret, which is shown only once."),
  previous_expires_at: timestamp.nullable().describe("When the previous secret expires."),
});

export const rotateSecret = onClient({
  at: `POST ${CLIENT}/rotate`,
  summary: "Rotate the client secret",
  description: "The old secret stays valid during the overlap, and issued tokens until they expire.",
  needsRecentSignIn: true,
  input: z.strictObject({
    overlap_hours: z
      .number({ error: OVERLAP })
      .min(0, { error: OVERLAP })
      .max(MAX_OVERLAP_HOURS, { error: OVERLAP })
      .optional()
      .describe(`How long the old secret stays valid; by default ${DEFAULT_OVERLAP_HOURS} hours.`),
    compromised,
  }),
  output: rotationSchema,
  shownOnce: "client_secret",
  refuses: ["fapi_conflict"],
  events: ["client.secret_rotated"],
  command: {
    name: "client rotate",
    options: {
      overlap_hours: {
        syntax: "--overlap <time>",
        text: `how long the old secret stays valid, 0h to ${MAX_OVERLAP_HOURS}h (default: ${DEFAULT_OVERLAP_HOURS}h)`,
        parse: parseOverlap,
      },
      compromised: "revoke all older secrets and every token of the client now",
    },
    example: "--overlap 48h",
    question: revokesAll,
  },
  async run({ storage, organization, actor, input, beforeCommit }) {
    const { overlap_hours: hours, compromised } = input;
    if (compromised && hours !== undefined)
      throw invalidField("overlap_hours", "must be omitted if compromised is true");
    const reason = { overlapMs: (hours ?? DEFAULT_OVERLAP_HOURS) * HOUR_MS, compromised };
    const rotated = await storage.clients
      .rotateSecret(organization.id, reason, actor, async (rotation) =>
        beforeCommit?.(toJson(rotationSchema, rotation)),
      )
      .catch(refuseConflict);
    return toJson(rotationSchema, found(rotated, "client"));
  },
});

/** `36h` → 36, `7d` → 168; anything else is no number, which the schema refuses. */
function parseOverlap([text = ""]: string[]): number {
  const [, amount, unit] = /^(\d{1,6}(?:\.\d{1,6})?)([hd]?)$/.exec(text) ?? [];
  return Number(amount) * (unit === "d" ? 24 : 1);
}

export const removeSecrets = onClient({
  at: `DELETE ${CLIENT}/secrets`,
  summary: "Remove all client secrets",
  description: "The client then authenticates with its keys only.",
  needsRecentSignIn: true,
  events: ["client.secrets_removed"],
  command: {
    name: "client remove-secrets",
    question: (_, organization) => `Remove all secrets of the client of ${organization}?`,
    result: () => ({ secrets: [] }),
  },
  done: { "secrets-removed": "All secrets removed." },
  async run({ storage, organization, actor }) {
    await storage.clients.removeSecrets(organization.id, actor);
  },
});

export const revokeSecret = onOrganization({
  at: `DELETE ${CLIENT}/secrets/{secret_id}`,
  summary: "Revoke an old client secret",
  roles: MANAGERS,
  description: "Ends the overlap of a rotation.",
  refuses: ["newest_secret"],
  events: ["client.secret_ended"],
  done: { "secret-ended": "Secret revoked." },
  async run({ storage, organization, actor, params }) {
    const failure = await storage.clients.revokeSecret(organization.id, params.secret_id, actor);
    if (failure === "missing") throw notFound("secret");
    if (failure === "newest") throw refusal("newest_secret");
  },
});
