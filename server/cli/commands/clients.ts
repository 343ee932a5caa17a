import { readFile } from "node:fs/promises";
import { OPERATOR } from "../../../resources/events/types.ts";
import { showDisabled, showKey, showRotation } from "../../clients/client-view.ts";
import { validateRedirectUris } from "../../clients/redirect-uris.ts";
import {
  type Command,
  type CommandContext,
  CommandError,
  nameInQuestion,
  organizationCommand,
  type Planned,
  reasonOf,
  reasonOption,
} from "../execution/command.ts";

const HOUR_MS = 60 * 60 * 1000;
const DEFAULT_OVERLAP_HOURS = 24;
const MAX_OVERLAP_HOURS = 168;

const KEY_REFUSALS = {
  duplicate: "The client already has this key.",
  limit: "A client has at most two keys. Remove one first.",
};

export const clientCommands: Command[] = [
  organizationCommand({
    name: "client rotate",
    summary: "Rotate the client secret",
    description: "Rotate the client secret; the old one stays valid during the overlap",
    options: {
      "--overlap <time>": `how long the old secret stays valid, 0h to ${MAX_OVERLAP_HOURS}h (default: ${DEFAULT_OVERLAP_HOURS}h)`,
      "--compromised": "revoke all older secrets and every token of the client now",
    },
    example: "--overlap 48h",
    irreversible: revokesAll,
    async run({ args: [id], options, storage, printFirst }) {
      const compromised = options.compromised === true;
      if (compromised && options.overlap !== undefined)
        throw new CommandError("invalid_overlap", "Use either --overlap or --compromised.");
      const overlapMs = parseOverlap(options.overlap) * HOUR_MS;
      const rotation = await storage.clients
        .rotateSecret(id, { overlapMs, compromised }, OPERATOR, (rotated) =>
          printFirst(showRotation(rotated)),
        )
        .catch(refuseConflict);
      if (!rotation) throw missingClient(id);
      return showRotation(rotation);
    },
  }),
  organizationCommand({
    name: "client redirect-uris",
    summary: "Replace the redirect URIs",
    description: "Replace the redirect URIs; without any, only client credentials work",
    arguments: { "[uri...]": "absolute redirect URIs" },
    example: "https://app.example.com/callback",
    async run(context) {
      const [id, ...uris] = context.args;
      const errors = validateRedirectUris(uris);
      if (errors.length) {
        const lines = errors.map(
          ({ index, message }) => `redirect_uris[${index}] ${uris[index]}: ${message}`,
        );
        throw new CommandError("invalid_redirect_uri", lines.join("\n"));
      }
      const { clients } = context.storage;
      if (!(await clients.setRedirectUris(id, uris, OPERATOR).catch(refuseConflict))) throw missingClient(id);
      return { client_id: await clientIdOf(context), redirect_uris: uris };
    },
  }),
  organizationCommand({
    name: "client disable",
    summary: "Disable the client and all its tokens",
    description: "Disable the client: it gets no new tokens, and all its tokens are inactive",
    options: reasonOption("the organization"),
    example: '--reason "Leaked secret"',
    async run(context) {
      const { args, options, storage } = context;
      const disabled = await storage.clients.disable(args[0], reasonOf(options), OPERATOR);
      if (!disabled) throw missingClient(args[0]);
      return { client_id: await clientIdOf(context), disabled: showDisabled(disabled) };
    },
  }),
  organizationCommand({
    name: "client enable",
    summary: "Enable a disabled client",
    description: "Enable a disabled client and its unexpired tokens",
    async run(context) {
      const [id] = context.args;
      if (await context.storage.clients.enable(id, OPERATOR)) throw missingClient(id);
      return { client_id: await clientIdOf(context), disabled: null };
    },
  }),
  organizationCommand({
    name: "client add-key",
    summary: "Add a public key of the client",
    description: "Add a public key that the client authenticates with (private_key_jwt)",
    arguments: { "<file>": "the public key: a JWK or PEM" },
    example: "public-key.pem",
    async run({ args: [id, file], storage }) {
      const added = await storage.clients.addKey(id, await readKey(file), OPERATOR);
      if (added === "missing") throw missingClient(id);
      if (typeof added === "string") throw new CommandError(`key_${added}`, KEY_REFUSALS[added]);
      return { key: showKey(added) };
    },
  }),
  organizationCommand({
    name: "client remove-key",
    summary: "Remove a public key of the client",
    arguments: { "<key-id>": 'ID of the key, as "org show" prints it' },
    options: { "--compromised": "also revoke every token and authorization of the client now" },
    example: "key_01JD0000000000000000000000",
    irreversible: revokesAll,
    async run({ args: [id, keyId], options, storage }) {
      const compromised = options.compromised === true;
      const removed = await storage.clients
        .removeKey(id, keyId, { compromised }, OPERATOR)
        .catch(refuseConflict);
      if (!removed) throw new CommandError("key_not_found", `The client has no key ${keyId}.`);
      return { removed: keyId };
    },
  }),
  organizationCommand({
    name: "client remove-secrets",
    summary: "Remove all client secrets",
    description: "Remove all client secrets; the client then authenticates with its keys only",
    irreversible: async (planned) => `Remove all secrets of the client of ${await nameInQuestion(planned)}?`,
    async run(context) {
      const [id] = context.args;
      if (!(await context.storage.clients.removeSecrets(id, OPERATOR))) throw missingClient(id);
      return { client_id: await clientIdOf(context), secrets: [] };
    },
  }),
];

async function revokesAll(planned: Planned): Promise<string | undefined> {
  if (!planned.options.compromised) return undefined;
  return `Revoke every token of the client of ${await nameInQuestion(planned)}?`;
}

/** Throws CommandError `fapi_conflict`. */
export function refuseConflict(error: unknown): never {
  // By its name, because its class is in a module that loads the database.
  if (error instanceof Error && error.name === "FapiConflict")
    throw new CommandError("fapi_conflict", error.message);
  throw error;
}

export function missingClient(id: string): CommandError {
  const message = `Organization ${id} has no OAuth client, because it has never been on a paid plan.`;
  return new CommandError("no_client", message);
}

export async function clientIdOf({
  storage,
  organization,
}: CommandContext & { organization: { id: string } }): Promise<string | undefined> {
  return (await storage.clients.findByOrganization(organization.id))?.clientId;
}

function parseOverlap(value: unknown): number {
  if (value === undefined) return DEFAULT_OVERLAP_HOURS;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([hd]?)$/.exec(String(value)) ?? [];
  const hours = Number(amount) * (unit === "d" ? 24 : 1);
  if (hours >= 0 && hours <= MAX_OVERLAP_HOURS) return hours;
  const message = `--overlap must be between 0h and ${MAX_OVERLAP_HOURS}h, for example 24h or 7d.`;
  throw new CommandError("invalid_overlap", message);
}

async function readKey(file: string) {
  const text = await readFile(file, "utf8").catch(() => {
    throw new CommandError("file_not_found", `Can't read ${file}.`);
  });
  const { InvalidKey, parsePublicKey } = await import("../../credentials/public-keys.ts");
  try {
    return await parsePublicKey(text);
  } catch (error) {
    if (!(error instanceof InvalidKey)) throw error;
    throw new CommandError("invalid_key", `The key in ${file} ${error.message}.`);
  }
}
