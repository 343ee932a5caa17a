import { OPERATOR } from "../../resources/events.ts";
import { showRotation } from "../client-view.ts";
import { refuseRedirectUris } from "../redirect-uris.ts";
import { type Command, CommandError } from "./command.ts";
import { findOrganization } from "./organizations.ts";

const HOUR_MS = 60 * 60 * 1000;
const DEFAULT_OVERLAP_HOURS = 24;
const MAX_OVERLAP_HOURS = 168;

/** `client …` */
export const clientCommands: Command[] = [
  {
    usage: "client rotate <org-id> [--overlap 24h] [--compromised]",
    summary: "makes a new secret; the old one lives on for the overlap, or ends at once",
    options: { overlap: { type: "string" }, compromised: { type: "boolean" } },
    arguments: { least: 1, most: 1 },
    migrates: true,
    async run({ args: [id], options, storage }) {
      await findOrganization(storage, id);
      const compromised = options.compromised === true;
      if (compromised && options.overlap !== undefined) {
        throw new CommandError("invalid_overlap", "overlap and compromised exclude each other");
      }
      const overlapMs = readOverlap(options.overlap) * HOUR_MS;
      const rotation = await storage.clients.rotateSecret(id as string, { overlapMs, compromised }, OPERATOR);
      if (!rotation) throw noClient(id);
      return showRotation(rotation);
    },
  },
  {
    usage: "client redirect-uris <org-id> <uri>…",
    summary: "replaces the redirect URIs; none: only client credentials work",
    arguments: { least: 1, most: Number.POSITIVE_INFINITY },
    migrates: true,
    async run({ args: [id, ...uris], storage }) {
      await findOrganization(storage, id);
      const wrong = refuseRedirectUris(uris);
      if (wrong.length) {
        const reasons = wrong.map(
          ({ index, message }) => `redirect_uris[${index}] ${uris[index]}: ${message}`,
        );
        throw new CommandError("invalid_redirect_uri", reasons.join("\n"));
      }
      if (!(await storage.clients.setRedirectUris(id as string, uris, OPERATOR))) throw noClient(id);
      const client = await storage.clients.ofOrganization(id as string);
      return { client_id: client?.clientId, redirect_uris: uris };
    },
  },
];

function noClient(id: string | undefined): CommandError {
  return new CommandError("no_client", `organization ${id} has never been on a paid plan: it has no client`);
}

/** Hours, from `24`, `24h` or `7d`. */
function readOverlap(given: unknown): number {
  if (given === undefined) return DEFAULT_OVERLAP_HOURS;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([hd]?)$/.exec(String(given)) ?? [];
  const hours = Number(amount) * (unit === "d" ? 24 : 1);
  if (hours >= 0 && hours <= MAX_OVERLAP_HOURS) return hours;
  throw new CommandError("invalid_overlap", `overlap must be 0h to ${MAX_OVERLAP_HOURS}h, such as 24h`);
}
