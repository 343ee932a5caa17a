import { z } from "zod";
import { MANAGERS } from "../../resources/access/scopes.ts";
import { found, notFound } from "../../resources/http/problem.ts";
import { checkText } from "../../resources/http/validate.ts";
import { showClient, showDisabled, showProfile } from "../clients/client-view.ts";
import { nameSchema } from "../credentials/names.ts";
import { ENDPOINT_LIST } from "../oauth-endpoints.ts";
import { CLIENT, clientId, clientOf, refuseConflict } from "./client-common.ts";
import { keySchema } from "./client-keys.ts";
import { type OrganizationRequest, onOrganization } from "./operation.ts";
import { refusal } from "./problem-codes.ts";
import { flag, REASON_MAX, reasonSchema, timestamp } from "./schemas.ts";

/** In characters. */
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
const endpointsSchema = z.record(z.string(), z.string()).meta({ title: "Endpoints" });

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

export const getClient = onOrganization({
  at: `GET ${CLIENT}`,
  summary: "Retrieve the OAuth client",
  roles: MANAGERS,
  description:
    "Returns the client with its secrets and keys, of which only the last characters and uses are known.",
  output: z.object({
    client_id: clientId,
    redirect_uris: z.array(z.string()),
    secrets: z.array(secretSchema),
    keys: z.array(keySchema),
    fapi: z.boolean().describe("Whether it follows the FAPI 2.0 Security Profile."),
    disabled: disabledSchema.optional(),
    ...profileSchema.shape,
    require_dpop: z.boolean(),
    endpoints: endpointsSchema,
  }),
  refuses: ["no_client"],
  async run(request) {
    const { storage, organization, urls } = request;
    const client = await clientOf(request);
    const [settings, profile] = await Promise.all([
      storage.organizationSettings.find(organization.id),
      storage.clients.findProfile(client.clientId),
    ]);
    return {
      ...showClient(client),
      ...showProfile(profile),
      require_dpop: settings?.requiresDpop ?? false,
      endpoints: endpointMap(urls),
    };
  },
});

export const listEndpoints = onOrganization({
  at: `GET ${CLIENT}/endpoints`,
  summary: "List the endpoints",
  roles: MANAGERS,
  description: "Returns the URLs that the client needs, named as RFC 8414 does.",
  output: endpointsSchema,
  refuses: ["no_client"],
  async run(request) {
    await clientOf(request);
    return endpointMap(request.urls);
  },
});

export const getClientProfile = onOrganization({
  at: `GET ${CLIENT}/profile`,
  summary: "Retrieve the client's name and homepage",
  roles: MANAGERS,
  output: profileSchema,
  refuses: ["no_client"],
  async run(request) {
    const { clientId } = await clientOf(request);
    return showProfile(await request.storage.clients.findProfile(clientId));
  },
});

export const setClientProfile = onOrganization({
  at: `PUT ${CLIENT}/profile`,
  summary: "Change the client's name and homepage",
  roles: MANAGERS,
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
  refuses: ["no_client"],
  events: ["client.profile_changed"],
  done: { "profile-saved": "Name and homepage saved." },
  async run(request) {
    const { storage, organization, actor, input } = request;
    await clientOf(request);
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

export const getClientSecurity = onOrganization({
  at: `GET ${CLIENT}/security`,
  summary: "Retrieve the client's security settings",
  roles: MANAGERS,
  output: z.object({ require_dpop: z.boolean(), fapi: z.boolean(), disabled: disabledSchema.optional() }),
  refuses: ["no_client"],
  async run(request) {
    const { fapi, disabled } = await clientOf(request);
    const settings = await request.storage.organizationSettings.find(request.organization.id);
    const require_dpop = settings?.requiresDpop ?? false;
    return { require_dpop, fapi, ...(disabled && { disabled: showDisabled(disabled) }) };
  },
});

const dpop = z.strictObject({ require_dpop: flag });
export const requireDpop = onOrganization({
  at: `PUT ${CLIENT}/require-dpop`,
  summary: "Require tokens that are bound to a key (DPoP)",
  roles: ["owner"],
  description: "If DPoP (RFC 9449) isn't required, bearer tokens are accepted, too.",
  needsRecentSignIn: true,
  input: dpop,
  output: z.object(dpop.shape),
  events: ["organization.dpop_requirement_changed"],
  command: {
    name: "org require-dpop",
    arguments: { require_dpop: "on rejects bearer tokens, including those already issued" },
    example: "on",
  },
  done: { "dpop-required": "DPoP is now required.", "dpop-optional": "DPoP is no longer required." },
  outcome: ({ require_dpop }) => (require_dpop ? "dpop-required" : "dpop-optional"),
  async run({ storage, organization, actor, input }) {
    const changes = { requiresDpop: input.require_dpop };
    const isSet = await storage.organizationSettings.change(organization.id, changes, actor);
    if (!isSet) throw notFound("organization");
    return input;
  },
});

const fapi = z.strictObject({ fapi: flag });
export const setFapi = onOrganization({
  at: `PUT ${CLIENT}/fapi`,
  summary: "Restrict the client to FAPI 2.0",
  roles: ["owner"],
  description: "All requests that don't follow the FAPI 2.0 Security Profile are then rejected.",
  needsRecentSignIn: true,
  input: fapi,
  output: z.object(fapi.shape),
  refuses: ["no_client", "fapi_conflict"],
  events: ["client.fapi_changed"],
  command: {
    name: "org fapi",
    arguments: { fapi: "on requires a public key, no secrets, and only https redirect URIs" },
    example: "on",
  },
  done: {
    "fapi-on": "The client now follows FAPI 2.0.",
    "fapi-off": "The client no longer follows FAPI 2.0.",
  },
  outcome: ({ fapi: isOn }) => (isOn ? "fapi-on" : "fapi-off"),
  async run(request) {
    const { storage, organization, actor, input } = request;
    await clientOf(request);
    await storage.clients.setFapi(organization.id, input.fapi, actor).catch(refuseConflict);
    return input;
  },
});

export const disableClient = onOrganization({
  at: `POST ${CLIENT}/disable`,
  summary: "Disable the client and all its tokens",
  roles: ["owner"],
  description: "It gets no new tokens, and all its tokens are inactive until it is enabled again.",
  needsRecentSignIn: true,
  input: z.strictObject({ reason: reasonSchema.describe("Why, for the audit log.") }),
  output: z.object({ disabled: disabledSchema }),
  refuses: ["no_client"],
  events: ["client.disabled"],
  command: {
    name: "client disable",
    options: {
      reason: { syntax: "--reason <text>", text: `why, for the organization: 1 to ${REASON_MAX} characters` },
    },
    example: '--reason "Leaked"',
  },
  done: { "client-disabled": "Client disabled." },
  async run(request) {
    const { storage, organization, actor, input } = request;
    await clientOf(request);
    const disabled = await storage.clients.disable(organization.id, input.reason, actor);
    return { disabled: showDisabled(found(disabled, "client")) };
  },
});

export const enableClient = onOrganization({
  at: `POST ${CLIENT}/enable`,
  summary: "Enable a disabled client",
  roles: ["owner"],
  description: "Its unexpired tokens work again.",
  needsRecentSignIn: true,
  refuses: ["no_client", "disabled_by_operator"],
  events: ["client.enabled"],
  command: { name: "client enable", result: () => ({ disabled: null }) },
  done: { "client-enabled": "Client enabled." },
  async run(request) {
    const { storage, organization, actor } = request;
    await clientOf(request);
    const failure = await storage.clients.enable(organization.id, actor);
    if (failure === "missing") throw notFound("client");
    if (failure === "operator") throw refusal("disabled_by_operator");
  },
});
