import type { Context, Middleware } from "koa";
import { errors } from "oidc-provider";
import { DEVICE_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import { allowOrigins } from "../../resources/http/cors.ts";
import { parseJson, readBody } from "../../resources/http/json-body.ts";
import { Problem } from "../../resources/http/problem.ts";
import { mount } from "../../resources/http/routing.ts";
import { isClientId } from "../clients/client-metadata.ts";
import { validateRedirectUris } from "../clients/redirect-uris.ts";
import type { RegisteredClientIds, Registration } from "../clients/registered-client-id.ts";
import { REGISTERED_CLIENT } from "../clients/registered-clients.ts";
import { NAME_MAX, normalizeName, resemblesService, validateName } from "../credentials/names.ts";
import { ENDPOINTS } from "../oauth-endpoints.ts";

// Compressing 16 KB can take a hundred times as long, and longer metadata rarely fits into an id.
const MAX_METADATA_LENGTH = 2048;

// Some clients add what their user calls this server, which may be its own name: "Amp MCP Client (linkgate)".
const SERVER_NAME = /\([^()]*\)$/;
// The consent page puts the name in quotation marks.
const QUOTATION = /["“”„‟«»＂〝〞〟❝❞🙶🙷🙸″‶ʺˮ״]/u;
const SECRET_METHODS = ["client_secret_basic", "client_secret_post"];

type Metadata = Record<string, unknown>;

const BODY_MAX = 16 * 1024;

/** RFC 7591 §3. oidc-provider would store each registration, and anyone may send any number of them. */
export function registration(ids: RegisteredClientIds, origins: ReadonlySet<string>): Middleware {
  const isRegistration = ({ path }: Context) => path === ENDPOINTS.registration.path;
  return mount(isRegistration, [allowOrigins(origins), (ctx) => register(ctx, ids)]);
}

async function register(ctx: Context, ids: RegisteredClientIds): Promise<void> {
  ctx.set("Cache-Control", "no-store");
  try {
    const metadata = await readJson(ctx);
    const client = parseRegistrationRequest(metadata);
    const clientId = issueId(ids, client);
    ctx.status = 201;
    ctx.body = {
      client_id: clientId,
      client_id_issued_at: Math.floor(Date.now() / 1000),
      ...(client.name && { client_name: client.name }),
      redirect_uris: client.redirectUris,
      ...REGISTERED_CLIENT,
      grant_types: grantTypesFor(metadata as Metadata),
    };
  } catch (error) {
    if (!(error instanceof errors.OIDCProviderError)) throw error;
    ctx.status = error.statusCode;
    ctx.body = { error: error.error, error_description: error.error_description };
  }
}

/** Every client may use the device grant, but clients that didn't ask for it may reject a response that names it. */
function grantTypesFor({ grant_types: requested }: Metadata): string[] {
  const isRequested = (type: string) => Array.isArray(requested) && requested.includes(type);
  return REGISTERED_CLIENT.grant_types.filter((type) => type !== DEVICE_GRANT || isRequested(type));
}

/** Throws InvalidClientMetadata if the id would be too long. */
export function issueId(
  ids: RegisteredClientIds,
  client: Pick<Registration, "name" | "redirectUris">,
): string {
  const { length } = [client.name, ...client.redirectUris].join();
  const clientId = length <= MAX_METADATA_LENGTH ? ids.issue(client) : "";
  if (isClientId(clientId)) return clientId;
  throw new errors.InvalidClientMetadata(
    "redirect_uris and client_name must be shorter; the client ID contains them and has at most 255 characters",
  );
}

async function readJson(ctx: Context): Promise<unknown> {
  if (!ctx.is("application/json"))
    throw new errors.InvalidRequest("the content type must be application/json", 415);
  try {
    return parseJson(await readBody(ctx.req, BODY_MAX));
  } catch (error) {
    if (!(error instanceof Problem) && !(error instanceof SyntaxError)) throw error;
    const isTooLarge = error instanceof Problem && error.status === 413;
    if (isTooLarge) throw new errors.InvalidRequest("the request must be at most 16 KB", 413);
    throw new errors.InvalidClientMetadata("the request must be a JSON object");
  }
}

/** RFC 7591 §2. Replaces requested values that a client can do without. Throws InvalidClientMetadata. */
export function parseRegistrationRequest(body: unknown): Pick<Registration, "name" | "redirectUris"> {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new errors.InvalidClientMetadata("the request must be a JSON object");
  const metadata = body as Metadata;
  // Its claims would take precedence over the rest of the request (RFC 7591 §2.3).
  if (metadata.software_statement !== undefined)
    throw new errors.UnapprovedSoftwareStatement("software_statement must be absent; none is approved");
  requireSupported(metadata, "grant_types", "authorization_code");
  requireSupported(metadata, "response_types", "code");
  requirePublic(metadata.token_endpoint_auth_method);
  return { name: parseName(metadata.client_name), redirectUris: parseRedirectUris(metadata.redirect_uris) };
}

function requireSupported(metadata: Metadata, member: string, value: string): void {
  const requested = metadata[member] ?? [value];
  if (Array.isArray(requested) && requested.includes(value)) return;
  throw new errors.InvalidClientMetadata(`${member} must be an array that contains ${value}`);
}

/** A client that asks for a secret can do without. One with a key of its own expects that the key is required. */
function requirePublic(method: unknown = "none"): void {
  if (method === null || method === "none" || SECRET_METHODS.includes(method as string)) return;
  throw new errors.InvalidClientMetadata(
    "token_endpoint_auth_method must be none; registered clients are public",
  );
}

function parseName(value: unknown): string {
  const text = value ?? "";
  if (typeof text !== "string") throw new errors.InvalidClientMetadata("client_name must be a string");
  if (text.length > MAX_METADATA_LENGTH)
    throw new errors.InvalidClientMetadata(`client_name must be 1 to ${NAME_MAX} characters long`);
  const given = normalizeName(text);
  const name = resemblesService(given) ? given.replace(SERVER_NAME, "").trimEnd() : given;
  if (name === "") return name;
  const message = QUOTATION.test(name) ? "must not contain quotation marks" : validateName(name);
  if (message) throw new errors.InvalidClientMetadata(`client_name ${message}`);
  return name;
}

function parseRedirectUris(uris: unknown): string[] {
  if (!Array.isArray(uris) || uris.length === 0 || !uris.every((uri) => typeof uri === "string"))
    throw new errors.InvalidClientMetadata("redirect_uris must be an array of one or more strings");
  const [invalid] = validateRedirectUris(uris);
  // oidc-provider's error has the code `invalid_redirect_uri` if its description starts with the member's name.
  if (invalid) throw new errors.InvalidClientMetadata(`redirect_uris[${invalid.index}] ${invalid.message}`);
  return uris;
}
