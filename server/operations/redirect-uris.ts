import { z } from "zod";
import type { ClientView } from "../../adapters/oauth/clients.ts";
import { found, Problem } from "../../resources/http/problem.ts";
import { invalidField } from "../../resources/http/validate.ts";
import { validateRedirectUris } from "../clients/redirect-uris.ts";
import { CLIENT, clientId, onClient, refuseConflict } from "./client-common.ts";
import type { OrganizationRequest } from "./operation.ts";

const redirectUrisSchema = z
  .object({ client_id: clientId, redirect_uris: z.array(z.string()) })
  .meta({ title: "RedirectUris" });

export const listRedirectUris = onClient({
  at: `GET ${CLIENT}/redirect-uris`,
  summary: "List the redirect URIs",
  output: redirectUrisSchema,
  run: async ({ client }) => ({ client_id: client.clientId, redirect_uris: client.redirectUris }),
});

export const setRedirectUris = onClient({
  at: `PUT ${CLIENT}/redirect-uris`,
  summary: "Replace the redirect URIs",
  description: "Without any, only client credentials work.",
  needsRecentSignIn: true,
  input: z.strictObject({
    redirect_uris: z
      .array(z.string({ error: "must be text" }), { error: "must be a list" })
      .describe("At most 20 absolute URIs."),
  }),
  output: redirectUrisSchema,
  refuses: ["fapi_conflict"],
  events: ["client.redirect_uris_changed"],
  command: {
    name: "client redirect-uris",
    arguments: { redirect_uris: "absolute redirect URIs" },
    example: "https://app.example.com/callback",
  },
  done: { "uris-saved": "Redirect URIs saved." },
  async run({ storage, organization, actor, input, client: { clientId: client_id } }) {
    checkAll(input.redirect_uris);
    await storage.clients.setRedirectUris(organization.id, input.redirect_uris, actor).catch(refuseConflict);
    return { client_id, ...input };
  },
});

/** Throws Problem that lists every invalid URI. */
function checkAll(uris: string[]): void {
  const invalid = validateRedirectUris(uris);
  if (invalid.length === 0) return;
  const detail = invalid.map(({ index, message }) => `${uris[index] ?? ""}: ${message}`).join("; ");
  const errors = invalid.map(({ index, message }) => ({ field: `redirect_uris.${index}`, message }));
  throw new Problem(422, "invalid_redirect_uris", detail, { errors });
}

const ONE_URI = {
  needsRecentSignIn: true,
  input: z.strictObject({ redirect_uri: z.string({ error: "must be text" }).trim() }),
  output: redirectUrisSchema,
  refuses: ["fapi_conflict"],
  events: ["client.redirect_uris_changed"],
} as const;

export const addRedirectUri = onClient({
  ...ONE_URI,
  at: `POST ${CLIENT}/redirect-uris`,
  summary: "Add a redirect URI",
  done: { "uri-added": "Redirect URI added." },
  run: (request) => changeUris(request, { add: request.input.redirect_uri }, checkLast),
});

export const removeRedirectUri = onClient({
  ...ONE_URI,
  at: `DELETE ${CLIENT}/redirect-uris`,
  summary: "Remove a redirect URI",
  done: { "uri-removed": "Redirect URI removed." },
  run: (request) => changeUris(request, { remove: request.input.redirect_uri }, () => {}),
});

async function changeUris(
  { storage, organization, actor, client }: OrganizationRequest & { client: ClientView },
  change: { add?: string; remove?: string },
  check: (uris: string[]) => void,
) {
  const uris = await storage.clients
    .changeRedirectUris(organization.id, change, check, actor)
    .catch(refuseConflict);
  return { client_id: client.clientId, redirect_uris: found(uris, "client") };
}

/** Throws Problem if the URI that was added is invalid. */
function checkLast(uris: string[]): void {
  const invalid = validateRedirectUris(uris).find(({ index }) => index === uris.length - 1);
  if (invalid) throw invalidField("redirect_uri", invalid.message);
}
