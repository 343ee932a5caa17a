import { OPERATOR } from "../../resources/events/types.ts";
import { showRotation } from "../clients/client-view.ts";
import { validateRedirectUris } from "../clients/redirect-uris.ts";
import { type Command, CommandError } from "./command.ts";
import { EXAMPLE_ORG, findOrganization, ORG_ID } from "./organizations.ts";

const HOUR_MS = 60 * 60 * 1000;
const DEFAULT_OVERLAP_HOURS = 24;
const MAX_OVERLAP_HOURS = 168;

/** `client …` */
export const clientCommands: Command[] = [
  {
    name: "client rotate",
    summary: "Rotate the client secret; the old one stays valid during the overlap",
    arguments: { "<org-id>": ORG_ID },
    options: {
      "--overlap <time>": `how long the old secret stays valid, 0h to ${MAX_OVERLAP_HOURS}h (default: ${DEFAULT_OVERLAP_HOURS}h)`,
      "--compromised": "revoke all older secrets and every token of the client now",
    },
    example: `${EXAMPLE_ORG} --overlap 48h`,
    needs: "schema",
    async run({ args: [id], options, storage }) {
      await findOrganization(storage, id);
      const compromised = options.compromised === true;
      if (compromised && options.overlap !== undefined) {
        throw new CommandError("invalid_overlap", "Use either --overlap or --compromised.");
      }
      const overlapMs = parseOverlap(options.overlap) * HOUR_MS;
      const rotation = await storage.clients.rotateSecret(id as string, { overlapMs, compromised }, OPERATOR);
      if (!rotation) throw missingClient(id);
      return showRotation(rotation);
    },
  },
  {
    name: "client redirect-uris",
    summary: "Replace the redirect URIs; without any, only client credentials work",
    arguments: { "<org-id>": ORG_ID, "[uri...]": "absolute redirect URIs" },
    example: `${EXAMPLE_ORG} https://app.example.com/callback`,
    needs: "schema",
    async run({ args: [id, ...uris], storage }) {
      await findOrganization(storage, id);
      const errors = validateRedirectUris(uris);
      if (errors.length) {
        const lines = errors.map(
          ({ index, message }) => `redirect_uris[${index}] ${uris[index]}: ${message}`,
        );
        throw new CommandError("invalid_redirect_uri", lines.join("\n"));
      }
      if (!(await storage.clients.setRedirectUris(id as string, uris, OPERATOR))) throw missingClient(id);
      const client = await storage.clients.findByOrganization(id as string);
      return { client_id: client?.clientId, redirect_uris: uris };
    },
  },
];

/** Returns the error for an organization without a client. */
export function missingClient(id: string | undefined): CommandError {
  return new CommandError(
    "no_client",
    `Organization ${id} has no OAuth client, because it has never been on a paid plan.`,
  );
}

/** Returns the hours of `24`, `24h` or `7d`. */
function parseOverlap(value: unknown): number {
  if (value === undefined) return DEFAULT_OVERLAP_HOURS;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([hd]?)$/.exec(String(value)) ?? [];
  const hours = Number(amount) * (unit === "d" ? 24 : 1);
  if (hours >= 0 && hours <= MAX_OVERLAP_HOURS) return hours;
  throw new CommandError(
    "invalid_overlap",
    `--overlap must be between 0h and ${MAX_OVERLAP_HOURS}h, for example 24h or 7d.`,
  );
}
