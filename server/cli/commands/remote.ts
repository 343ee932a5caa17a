import type { Configuration, TokenEndpointResponse } from "openid-client";
import { ZodOptional, type ZodRawShape, type ZodType } from "zod";
import { camelCase } from "../../../resources/http/text.ts";
import { typeOfField } from "../../../resources/http/validate.ts";
import { listQuery } from "../../../resources/links/list.ts";
import { NO_NAMES } from "../../../resources/links/rules.ts";
import { linkSchemas } from "../../../resources/links/schema.ts";
import { type Command, CommandError, type CommandInput } from "../execution/command.ts";
import { deleteLogin, type Login, readLogin, writeLogin } from "../login-file.ts";
import { requireServerUrl, SERVER } from "./listen.ts";

const SCOPE = "openid offline_access links:read links:write";
const EARLY_MS = 60_000;
/** What the help shows for a value of a type. */
const VALUES: Record<string, string> = {
  array: "json",
  object: "json",
  record: "json",
  number: "number",
  boolean: "true|false",
};

const schemas = linkSchemas(NO_NAMES);
const { url: _, ...ofNewLink } = schemas.create.shape;
const ofLink = schemas.update.shape;

/** Commands of a person who is signed in to a running server. They call its API. */
export const remoteCommands: Command[] = [
  {
    name: "login",
    summary: "Sign in to a server as yourself",
    description: "Sign in to a running server as yourself, in a browser on any device (RFC 8628)",
    arguments: { "[server]": `the server (default: ${SERVER})` },
    example: "https://links.example.com",
    describe: (result) => `Signed in to ${(result as { server: string }).server}.`,
    runAlone: login,
  },
  { name: "logout", summary: "Sign out, and revoke the access", runAlone: logout },
  { name: "whoami", summary: "Show who is signed in, and where", runAlone: whoami },
  {
    name: "links list",
    summary: "List links",
    options: optionsOf(listQuery.shape),
    example: "--search spring",
    runAlone: ({ options }) => request("GET", "/v1/links", { query: fieldsOf(listQuery.shape, options) }),
  },
  {
    name: "links get",
    summary: "Show a link",
    arguments: { "<id>": "ID of the link" },
    runAlone: ({ args: [id] }) => request("GET", linkPath(id)),
  },
  {
    name: "links create",
    summary: "Create a link",
    arguments: { "<url>": "the destination" },
    options: optionsOf(ofNewLink),
    example: "https://example.com/spring --slug spring",
    runAlone: ({ args: [url], options }) =>
      request("POST", "/v1/links", { body: { url, ...fieldsOf(ofNewLink, options) } }),
  },
  {
    name: "links update",
    summary: "Change fields of a link",
    arguments: { "<id>": "ID of the link" },
    options: optionsOf(ofLink),
    runAlone: ({ args: [id], options }) =>
      request("PATCH", linkPath(id), { body: fieldsOf(ofLink, options) }),
  },
  {
    name: "links delete",
    summary: "Delete a link; its slug can't be reused",
    arguments: { "<id>": "ID of the link" },
    runAlone: async ({ args: [id] }) => (await request("DELETE", linkPath(id))) ?? { id, deleted: true },
  },
];

function linkPath(id: string): string {
  return `/v1/links/${encodeURIComponent(id)}`;
}

/** Returns an option for each field. A list takes several values, an object its JSON. */
function optionsOf(shape: ZodRawShape): Record<string, string> {
  const entries = Object.entries(shape).map(([name, field]) => {
    const type = typeOfField(field);
    const value = name === "tags" ? "tag..." : VALUES[type];
    const { description } = field instanceof ZodOptional ? (field.unwrap() as ZodType) : (field as ZodType);
    return [`--${name.replaceAll("_", "-")} <${value ?? "value"}>`, description ?? name];
  });
  return Object.fromEntries(entries);
}

/** Returns the fields of the options. Texts are as they were typed; an empty one clears a field. */
function fieldsOf(shape: ZodRawShape, options: CommandInput["options"]): Record<string, unknown> {
  const fields = Object.entries(shape).flatMap(([name, field]) => {
    const given = options[camelCase(name)];
    return given === undefined ? [] : [[name, toFieldValue(name, typeOfField(field), given)]];
  });
  return Object.fromEntries(fields);
}

function toFieldValue(
  name: string,
  type: string,
  given: NonNullable<CommandInput["options"][string]>,
): unknown {
  if (Array.isArray(given)) return given;
  if (given === "") return null;
  if (type === "string" || type === "pipe" || type === "enum") return given;
  try {
    return JSON.parse(String(given));
  } catch {
    return type === "number" || type === "boolean" ? given : refuseJson(name);
  }
}

function refuseJson(name: string): never {
  throw new CommandError("invalid_option", `--${name.replaceAll("_", "-")} must be JSON.`);
}

async function login({ args, print }: CommandInput): Promise<object> {
  const server = requireServerUrl(args[0] ?? SERVER, "The server").origin;
  const oauth = await import("openid-client");
  const configuration = await discover(server);
  if (!configuration.serverMetadata().device_authorization_endpoint)
    throw new CommandError(
      "unsupported",
      `${server} has no sign-in for the command line (DEVICE_GRANT=off).`,
    );
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const tokens = await describingErrors(async () => {
    const started = await oauth.initiateDeviceAuthorization(configuration, { scope: SCOPE });
    const { user_code, verification_uri_complete, verification_uri } = started;
    const address = verification_uri_complete ?? verification_uri;
    print(
      { verification_uri: address, user_code },
      `Open ${address}\nand allow access if the page shows the code ${user_code}.`,
    );
    return oauth.pollDeviceAuthorizationGrant(configuration, started, undefined, { signal: stop.signal });
  });
  await keep(server, tokens);
  return { server };
}

async function discover(server: string): Promise<Configuration> {
  const { allowInsecureRequests, discovery, None } = await import("openid-client");
  const { CLI_CLIENT } = await import("../../clients/known-clients.ts");
  const execute = server.startsWith("http:") ? [allowInsecureRequests] : [];
  return describingErrors(() =>
    discovery(new URL(server), CLI_CLIENT, undefined, None(), { algorithm: "oauth2", execute }),
  );
}

/** @throws CommandError with the code of RFC 6749 or RFC 8628 */
async function describingErrors<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const { error: code, error_description, cause, message } = error as Error & Record<string, string>;
    if (code === "access_denied") throw new CommandError(code, "The access was denied.");
    if (code === "expired_token")
      throw new CommandError(code, "The code has expired. Run the command again.");
    const reason = error_description ?? (cause as { message?: string } | undefined)?.message ?? message;
    throw new CommandError(code ?? "failed", `The server can't be used: ${reason}.`);
  }
}

async function keep(server: string, tokens: TokenEndpointResponse): Promise<Login> {
  const login = {
    server,
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token ?? "",
    expiresAt: Date.now() + (tokens.expires_in ?? 0) * 1000,
  };
  await writeLogin(login);
  return login;
}

/** Returns the stored login, with an access token that is renewed before it expires. */
async function currentLogin(): Promise<Login> {
  const login = await requireLogin();
  if (login.expiresAt - EARLY_MS > Date.now()) return login;
  const { refreshTokenGrant } = await import("openid-client");
  const configuration = await discover(login.server);
  return keep(
    login.server,
    await describingErrors(() => refreshTokenGrant(configuration, login.refreshToken)),
  );
}

async function requireLogin(): Promise<Login> {
  const login = await readLogin();
  if (login) return login;
  throw new CommandError("not_signed_in", 'Not signed in. Run "linkgate login <server>" first.');
}

async function logout(): Promise<object> {
  const { server, refreshToken } = await requireLogin();
  const { tokenRevocation } = await import("openid-client");
  const configuration = await discover(server);
  await describingErrors(() => tokenRevocation(configuration, refreshToken));
  await deleteLogin();
  return { server, signed_in: false };
}

async function whoami(): Promise<object> {
  const { server, accessToken } = await currentLogin();
  const oauth = await import("openid-client");
  const configuration = await discover(server);
  const claims = await describingErrors(() =>
    oauth.fetchUserInfo(configuration, accessToken, oauth.skipSubjectCheck),
  );
  const organization = (await request("GET", "/v1/organization")) as Record<string, unknown>;
  const { id, name, role } = organization;
  return { server, username: claims.preferred_username, organization: { id, name, role } };
}

/** Sends a request to the API. @throws CommandError with the code of the problem */
async function request(
  method: string,
  path: string,
  { query = {}, body }: { query?: Record<string, unknown>; body?: Record<string, unknown> } = {},
): Promise<object | undefined> {
  const { server, accessToken } = await currentLogin();
  const url = new URL(path, server);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  const headers = { authorization: `Bearer ${accessToken}`, "content-type": "application/json" };
  const response = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) }).catch(
    () => {
      throw new CommandError("unreachable", `${server} can't be reached.`);
    },
  );
  if (response.status === 204) return undefined;
  const answer = (await response.json()) as { code?: string; detail?: string; errors?: Invalid[] };
  if (response.ok) return answer;
  const { code = "failed", detail = `The server answered with ${response.status}.`, errors = [] } = answer;
  throw new CommandError(
    code,
    [detail, ...errors.map(({ field, message }) => `${field} ${message}`)].join("\n"),
  );
}

type Invalid = { field: string; message: string };
