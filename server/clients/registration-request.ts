import { errors } from "oidc-provider";
import { normalizeName, resemblesService, validateName } from "../credentials/names.ts";
import { validateRedirectUris } from "./redirect-uris.ts";
import type { Registration } from "./registered-client-id.ts";

// Some clients add what their user calls this server, which may be its own name: "Amp MCP Client (linkgate)".
const SERVER_NAME = /\s*\([^()]*\)$/;
// The consent page puts the name in quotation marks.
const QUOTATION = /["“”„‟«»＂〝〞〟❝❞🙶🙷🙸″‶ʺˮ״]/u;
const SECRET_METHODS = ["client_secret_basic", "client_secret_post"];

/** What is the same for every registered client. */
export const REGISTERED_CLIENT = {
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  // `native` allows https everywhere, http on loopback with any port, and private-use schemes (RFC 8252 §7).
  application_type: "native",
} as const;

type Metadata = Record<string, unknown>;

/**
 * Returns what a registration request registers (RFC 7591 §2). Requested values that a client can do without are
 * replaced, such as a client secret or the type of application; the response says so. Unknown metadata is ignored.
 * @throws InvalidClientMetadata naming the member and the rule; UnapprovedSoftwareStatement
 */
export function parseRegistrationRequest(body: unknown): Pick<Registration, "name" | "redirectUris"> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new errors.InvalidClientMetadata("the request must be a JSON object");
  }
  const metadata = body as Metadata;
  // Its claims would take precedence over the rest of the request (RFC 7591 §2.3).
  if (metadata.software_statement !== undefined) {
    throw new errors.UnapprovedSoftwareStatement("software_statement must be absent; none is approved");
  }
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
  if (typeof (value ?? "") !== "string")
    throw new errors.InvalidClientMetadata("client_name must be a string");
  const given = normalizeName((value ?? "") as string);
  const name = resemblesService(given) ? given.replace(SERVER_NAME, "") : given;
  if (name === "") return name;
  const message = QUOTATION.test(name) ? "must not contain quotation marks" : validateName(name);
  if (message) throw new errors.InvalidClientMetadata(`client_name ${message}`);
  return name;
}

function parseRedirectUris(uris: unknown): string[] {
  if (!Array.isArray(uris) || uris.length === 0 || !uris.every((uri) => typeof uri === "string")) {
    throw new errors.InvalidClientMetadata("redirect_uris must be an array of one or more strings");
  }
  const [invalid] = validateRedirectUris(uris);
  // The library's error has the code `invalid_redirect_uri` if its description starts with the member's name.
  if (invalid) throw new errors.InvalidClientMetadata(`redirect_uris[${invalid.index}] ${invalid.message}`);
  return uris;
}
