import { z } from "zod";
import { MANAGERS } from "../../resources/access/scopes.ts";
import { notFound, Problem } from "../../resources/http/problem.ts";
import { toJson } from "../../resources/http/to-json.ts";
import type { PublicKey } from "../credentials/public-keys.ts";
import { CLIENT, compromised, onClient, refuseConflict, revokesAll } from "./client-common.ts";
import { onOrganization } from "./operation.ts";
import { refusal } from "./problem-codes.ts";
import { timestamp } from "./schemas.ts";

export const keySchema = z
  .object({
    id: z.string(),
    thumbprint: z.string().describe("The SHA-256 thumbprint of the JWK (RFC 7638)."),
    created_at: timestamp,
    last_used_at: timestamp.nullable(),
  })
  .meta({ title: "ClientKey" });

export const listClientKeys = onClient({
  at: `GET ${CLIENT}/keys`,
  summary: "List the public keys of the client",
  output: z.object({ data: z.array(keySchema) }),
  run: async ({ client }) => ({ data: client.keys.map((key) => toJson(keySchema, key)) }),
});

export const addClientKey = onClient({
  at: `POST ${CLIENT}/keys`,
  summary: "Add a public key of the client",
  description: "The client authenticates with the private key (`private_key_jwt`) instead of a secret.",
  needsRecentSignIn: true,
  input: z.strictObject({
    key: z
      .union([z.string(), z.record(z.string(), z.unknown())], { error: "must be a JWK or PEM text" })
      .describe("A JWK, as an object or as text, or PEM."),
  }),
  output: keySchema,
  status: 201,
  refuses: ["duplicate_key", "key_limit", "invalid_key"],
  events: ["client.key_added"],
  command: {
    name: "client add-key",
    arguments: { key: { syntax: "<file>", text: "the public key: a JWK or PEM", isFile: true } },
    example: "public-key.pem",
    result: ({ output }) => ({ key: output }),
  },
  done: { "key-added": "Public key added." },
  async run({ storage, organization, actor, input }) {
    const key = await readKey(typeof input.key === "string" ? input.key : JSON.stringify(input.key));
    const added = await storage.clients.addKey(organization.id, key, actor);
    if (added === "missing") throw notFound("client");
    if (added === "duplicate") throw refusal("duplicate_key");
    if (added === "limit") throw refusal("key_limit");
    return toJson(keySchema, added);
  },
});

/** Throws Problem 422 that names the rule. */
async function readKey(text: string): Promise<PublicKey> {
  // Here, because the help of the command needs no cryptography.
  const { InvalidKey, parsePublicKey } = await import("../credentials/public-keys.ts");
  try {
    return await parsePublicKey(text);
  } catch (error) {
    if (!(error instanceof InvalidKey)) throw error;
    const { message } = error;
    throw new Problem(422, "invalid_key", `The key ${message}.`, { errors: [{ field: "key", message }] });
  }
}

export const removeClientKey = onOrganization({
  at: `DELETE ${CLIENT}/keys/{key_id}`,
  summary: "Remove a public key of the client",
  roles: MANAGERS,
  needsRecentSignIn: true,
  input: z.strictObject({ compromised }),
  refuses: ["fapi_conflict"],
  events: ["client.key_removed"],
  command: {
    name: "client remove-key",
    arguments: { key_id: 'ID of the key, as "org show" prints it' },
    options: { compromised: "also revoke every token and authorization of the client now" },
    example: "key_01JD0000000000000000000000",
    question: revokesAll,
    result: ({ params }) => ({ removed: params.key_id }),
  },
  done: { "key-removed": "Public key removed." },
  async run({ storage, organization, actor, params, input }) {
    const isRemoved = await storage.clients
      .removeKey(organization.id, params.key_id, input, actor)
      .catch(refuseConflict);
    if (!isRemoved) throw notFound("key");
  },
});
