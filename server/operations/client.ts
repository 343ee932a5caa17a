import { z } from "zod";
import type { ClientView } from "../../adapters/oauth/clients.ts";
import { found, notFound } from "../../resources/http/problem.ts";
import { toJson } from "../../resources/http/to-json.ts";
import { checkText } from "../../resources/http/validate.ts";
import { disabledToJson, profileToJson } from "../clients/client-view.ts";
import { nameSchema } from "../credentials/names.ts";
import { ENDPOINT_LIST } from "../oauth-endpoints.ts";
import { CLIENT, clientId, onClient, refuseConflict } from "./client-common.ts";
import { keySchema } from "./client-keys.ts";
import { type OrganizationRequest, onOrganization } from "./operation.ts";
import { changeSettings, onOff } from "./organization-settings.ts";
import { refusal } from "./problem-codes.ts";
import { flag, reasonOption, reasonSchema, timestamp } from "./schemas.ts";

export const HOMEPAGE_MAX = 255;

const disabledSchema = z
  .object({
    at: timestamp,
    by: z.string().describe("The user ID, or `operator`."),
    reason: z.string().nullable(),
  })
  .describe("Since when, by whom and why the client is disabled. Absent if it isn't.");
const secretSchema = z.object({
  id: z.string(),
  last4: z.string().describe("The last four characters."),
  created_at: timestamp,
  expires_at: timestamp.nullable(),
  last_used_at: timestamp.nullable(),
  callers: z.array(z.object({ program: z.string(), network: z.string(), last_used_at: timestamp })),
});
const profileSchema = z.object({
  client_name: z
    .string()
    .nullable()
    .describe("What users see as the app's name; `null` for the organization's."),
  client_uri: z.string().nullable().describe("The app's homepage."),
});
const clientSchema = z.object({
  client_id: clientId,
  redirect_uris: z.array(z.string()),
  secrets: z.array(secretSchema),
  keys: z.array(keySchema),
  fapi: z.boolean().describe("Whether it follows the FAPI 2.0 Security Profile."),
  disabled: disabledSchema.optional(),
});
const endpointsSchema = z.record(z.string(), z.string()).meta({ title: "Endpoints" });

/** Returns a client as its organization sees it: ids, last four characters and times, never a secret. */
export function clientToJson({ disabled, ...client }: ClientView) {
  return toJson(clientSchema, { ...client, disabled: disabled ? disabledToJson(disabled) : undefined });
}

/** Names endpoints as RFC 8414 does, plus those of the API and MCP. */
export function endpointsOf({ base, api, mcp }: OrganizationRequest["urls"]) {
  return [
    { name: "issuer", label: "Issuer", url: base },
    ...ENDPOINT_LIST.flatMap(({ name, label, path }) =>
      label ? { name: `${name}_endpoint`, label, url: base + path } : [],
    ),
    { name: "api", label: "REST API", url: api },
    { name: "mcp", label: "MCP", url: mcp },
    { name: "openapi", label: "OpenAPI", url: `${api}/openapi.json` },
  ];
}

function endpointMap(urls: OrganizationRequest["urls"]): Record<string, string> {
  return Object.fromEntries(endpointsOf(urls).map(({ name, url }) => [name, url]));
}

export const getClient = onClient({
  at: `GET ${CLIENT}`,
  summary: "Retrieve the OAuth client",
  description:
    "Returns the client with its secrets and keys, of which only the last characters and uses are known.",
  output: clientSchema.extend({
    ...profileSchema.shape,
    require_dpop: z.boolean(),
    endpoints: endpointsSchema,
  }),
  async run({ storage, organization, urls, client }) {
    const [settings, profile] = await Promise.all([
      storage.organizationSettings.find(organization.id),
      storage.clients.findProfile(client.clientId),
    ]);
    return {
      ...clientToJson(client),
      ...profileToJson(profile),
      require_dpop: settings?.requiresDpop ?? false,
      endpoints: endpointMap(urls),
    };
  },
});

export const listEndpoints = onClient({
  at: `GET ${CLIENT}/endpoints`,
  summary: "List the endpoints",
  description: "Returns the URLs that the client needs, named as RFC 8414 does.",
  output: endpointsSchema,
  run: async ({ urls }) => endpointMap(urls),
});

export const getClientProfile = onClient({
  at: `GET ${CLIENT}/profile`,
  summary: "Retrieve the client's name and homepage",
  output: profileSchema,
  run: async ({ storage, client }) => profileToJson(await storage.clients.findProfile(client.clientId)),
});

export const setClientProfile = onClient({
  at: `PUT ${CLIENT}/profile`,
  summary: "Change the client's name and homepage",
  description: "Users see them when the app asks for access. The names are those of RFC 7591 §2.",
  needsRecentSignIn: true,
  input: z.strictObject({
    client_name: nameSchema.nullable().default(null),
    client_uri: z
      .string({ error: "must be an https URL" })
      .check(checkText(validateHomepage))
      .nullable()
      .default(null),
  }),
  output: profileSchema,
  events: ["client.profile_changed"],
  done: { "profile-saved": "Name and homepage saved." },
  async run({ storage, organization, actor, input }) {
    const { client_name: name, client_uri: homepage } = input;
    await storage.clients.setProfile(organization.id, { name, homepage }, actor);
    return input;
  },
});

function validateHomepage(uri: string): string | undefined {
  if (uri.length > HOMEPAGE_MAX) return `must be at most ${HOMEPAGE_MAX} characters`;
  const url = URL.parse(uri);
  const isHttps = url?.protocol === "https:" && !url.username && !url.password && !/[^!-~]/.test(uri);
  return isHttps ? undefined : "must be an https URL";
}

export const getClientSecurity = onClient({
  at: `GET ${CLIENT}/security`,
  summary: "Retrieve the client's security settings",
  output: z.object({ require_dpop: z.boolean(), fapi: z.boolean(), disabled: disabledSchema.optional() }),
  async run({ storage, organization, client: { fapi, disabled } }) {
    const settings = await storage.organizationSettings.find(organization.id);
    const require_dpop = settings?.requiresDpop ?? false;
    return { require_dpop, fapi, ...(disabled && { disabled: disabledToJson(disabled) }) };
  },
});

export const requireDpop = onOrganization({
  ...onOff("require_dpop", {
    "dpop-required": "DPoP is now required.",
    "dpop-optional": "DPoP is no longer required.",
  }),
  at: `PUT ${CLIENT}/require-dpop`,
  summary: "Require tokens that are bound to a key (DPoP)",
  description: "If DPoP (RFC 9449) isn't required, bearer tokens are accepted, too.",
  output: z.object({ require_dpop: flag }),
  events: ["organization.dpop_requirement_changed"],
  command: {
    name: "org require-dpop",
    arguments: { require_dpop: "on rejects bearer tokens, including those already issued" },
    example: "on",
  },
  async run(request) {
    await changeSettings(request, { requiresDpop: request.input.require_dpop });
    return request.input;
  },
});

export const setFapi = onClient({
  ...onOff("fapi", {
    "fapi-on": "The client now follows FAPI 2.0.",
    "fapi-off": "The client no longer follows FAPI 2.0.",
  }),
  at: `PUT ${CLIENT}/fapi`,
  summary: "Restrict the client to FAPI 2.0",
  description: "All requests that don't follow the FAPI 2.0 Security Profile are then rejected.",
  output: z.object({ fapi: flag }),
  refuses: ["fapi_conflict"],
  events: ["client.fapi_changed"],
  command: {
    name: "org fapi",
    arguments: { fapi: "on requires a public key, no secrets, and only https redirect URIs" },
    example: "on",
  },
  async run({ storage, organization, actor, input }) {
    await storage.clients.setFapi(organization.id, input.fapi, actor).catch(refuseConflict);
    return input;
  },
});

export const disableClient = onClient({
  at: `POST ${CLIENT}/disable`,
  summary: "Disable the client and all its tokens",
  roles: ["owner"],
  description: "It gets no new tokens, and all its tokens are inactive until it is enabled again.",
  needsRecentSignIn: true,
  input: z.strictObject({ reason: reasonSchema.describe("Why, for the audit log.") }),
  output: z.object({ disabled: disabledSchema }),
  events: ["client.disabled"],
  command: {
    name: "client disable",
    options: { reason: reasonOption("the organization") },
    example: '--reason "Leaked"',
  },
  done: { "client-disabled": "Client disabled." },
  async run({ storage, organization, actor, input }) {
    const disabled = await storage.clients.disable(organization.id, input.reason, actor);
    return { disabled: disabledToJson(found(disabled, "client")) };
  },
});

export const enableClient = onClient({
  at: `POST ${CLIENT}/enable`,
  summary: "Enable a disabled client",
  roles: ["owner"],
  description: "Its unexpired tokens work again.",
  needsRecentSignIn: true,
  refuses: ["disabled_by_operator"],
  events: ["client.enabled"],
  command: { name: "client enable", result: () => ({ disabled: null }) },
  done: { "client-enabled": "Client enabled." },
  async run({ storage, organization, actor }) {
    const failure = await storage.clients.enable(organization.id, actor);
    if (failure === "missing") throw notFound("client");
    if (failure === "operator") throw refusal("disabled_by_operator");
  },
});
