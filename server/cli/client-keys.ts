import { readFile } from "node:fs/promises";
import { OPERATOR } from "../../resources/events/types.ts";
import { showKey } from "../clients/client-view.ts";
import { InvalidKey, parsePublicKey } from "../credentials/public-keys.ts";
import { missingClient } from "./clients.ts";
import { type Command, CommandError } from "./command.ts";
import { EXAMPLE_ORG, findOrganization, ORG_ID } from "./organizations.ts";

const REFUSALS = {
  duplicate: "The client already has this key.",
  limit: "A client has at most two keys. Remove one first.",
};

/** `client add-key`, `client remove-key` and `client remove-secrets` */
export const clientKeyCommands: Command[] = [
  {
    name: "client add-key",
    summary: "Add a public key that the client authenticates with (private_key_jwt)",
    arguments: { "<org-id>": ORG_ID, "<file>": "the public key: a JWK or PEM" },
    example: `${EXAMPLE_ORG} public-key.pem`,
    needs: "schema",
    async run({ args: [id, file], storage }) {
      await findOrganization(storage, id);
      const added = await storage.clients.addKey(id as string, await readKey(file as string), OPERATOR);
      if (added === "missing") throw missingClient(id);
      if (typeof added === "string") throw new CommandError(`key_${added}`, REFUSALS[added]);
      return { key: showKey(added) };
    },
  },
  {
    name: "client remove-key",
    summary: "Remove a public key of the client",
    arguments: { "<org-id>": ORG_ID, "<key-id>": 'ID of the key, as "org show" prints it' },
    options: { "--compromised": "also revoke every token and authorization of the client now" },
    example: `${EXAMPLE_ORG} key_01JD0000000000000000000000`,
    needs: "schema",
    async run({ args: [id, keyId], options, storage }) {
      await findOrganization(storage, id);
      const compromised = options.compromised === true;
      if (!(await storage.clients.removeKey(id as string, keyId as string, { compromised }, OPERATOR))) {
        throw new CommandError("key_not_found", `The client has no key ${keyId}.`);
      }
      return { removed: keyId };
    },
  },
  {
    name: "client remove-secrets",
    summary: "Remove all client secrets; the client then authenticates with its keys only",
    arguments: { "<org-id>": ORG_ID },
    example: EXAMPLE_ORG,
    needs: "schema",
    async run({ args: [id], storage }) {
      await findOrganization(storage, id);
      if (!(await storage.clients.removeSecrets(id as string, OPERATOR))) throw missingClient(id);
      const client = await storage.clients.findByOrganization(id as string);
      return { client_id: client?.clientId, secrets: [] };
    },
  },
];

async function readKey(file: string) {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch {
    throw new CommandError("file_not_found", `Can't read ${file}.`);
  }
  try {
    return await parsePublicKey(text);
  } catch (error) {
    if (!(error instanceof InvalidKey)) throw error;
    throw new CommandError("invalid_key", `The key in ${file} ${error.message}.`);
  }
}
