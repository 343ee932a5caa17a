import type { Tool } from "@modelcontextprotocol/client";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import { BODY_MAX, type Field, HEADER_MAX, type Sent } from "./texts.ts";

type Headers = Record<string, string>;

const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
export const inForm = (text: string) => new URLSearchParams({ "": text }).toString().slice(1);
const inPath = (text: string) => encodeURIComponent(text);
const inHeader = (text: string) => Buffer.from(text).toString("latin1");

function jsonField(
  name: string,
  path: string,
  headers: Headers,
  body: (text: string) => unknown,
  method = "POST",
): Field {
  const send = (text: string): Sent => ({
    path,
    init: {
      method,
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body(text)),
    },
  });
  return { name, max: path === "/oauth/register" ? 15 * 1024 : BODY_MAX, encode: inJson, send };
}

function queryField(
  name: string,
  method: string,
  address: (text: string) => string,
  headers: Headers,
  encode = inForm,
): Field {
  const send = (text: string): Sent => ({ path: address(encode(text)), init: { method, headers } });
  return { name, max: HEADER_MAX, encode, send };
}

function headerField(name: string, path: string, header: string, init: RequestInit = {}, start = ""): Field {
  const send = (text: string): Sent => ({
    path,
    init: { ...init, headers: { ...init.headers, [header]: start + inHeader(text) } },
  });
  return { name: `${name}, ${header} ${start}`.trim(), max: HEADER_MAX, encode: inHeader, send };
}

export function apiFields(document: OpenApiDocument, headers: Headers): Field[] {
  const find = (reference: string) =>
    (document.components.schemas[reference.split("/").at(-1) as string] ?? {}) as JsonSchema;
  return Object.entries(document.paths).flatMap(([template, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId, parameters, requestBody }]) => {
      const verb = method.toUpperCase();
      const path = template.replaceAll(/\{\w+\}/g, "x");
      const inParameters = parameters.map(({ name, in: place }) => {
        const label = `${operationId}, ${name}`;
        if (place === "header") return headerField(operationId, path, name, { method: verb, headers });
        if (place === "query") return queryField(label, verb, (text) => `${path}?${name}=${text}`, headers);
        const address = (text: string) => template.replace(`{${name}}`, text).replaceAll(/\{\w+\}/g, "x");
        return queryField(label, verb, address, headers, inPath);
      });
      const schema = requestBody?.content["application/json"]?.schema as JsonSchema | undefined;
      const inBody = (schema ? placesIn(schema, find) : []).map((place) =>
        jsonField(`${operationId}, ${place.path}`, path, headers, place.put, verb),
      );
      return [...inParameters, ...inBody];
    }),
  );
}

export function mcpFields(tools: readonly Tool[], token: string): Field[] {
  const headers = {
    authorization: `Bearer ${token}`,
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-03-26",
  };
  const message = (name: string, put: (text: string) => object) =>
    jsonField(`a message: ${name}`, "/mcp", headers, (text) => ({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      ...put(text),
    }));
  const args = tools.flatMap(({ name, inputSchema }) =>
    placesIn(inputSchema as JsonSchema, () => ({})).map((place) =>
      message(`${name}, ${place.path}`, (text) => ({ params: { name, arguments: place.put(text) } })),
    ),
  );
  return [
    ...args,
    message("ping, id", (id) => ({ id, method: "ping" })),
    message("ping, method", (method) => ({ method })),
    message("ping, name of a tool", (name) => ({ params: { name } })),
    message("ping, URI of a resource", (uri) => ({ method: "resources/read", params: { uri } })),
    message("ping, cursor", (cursor) => ({ method: "tools/list", params: { cursor } })),
  ];
}

const OAUTH_PARAMETERS: Record<string, string> = {
  token:
    "grant_type client_id client_secret client_assertion client_assertion_type scope code code_verifier redirect_uri refresh_token resource subject_token subject_token_type audience",
  par: "client_id scope redirect_uri state nonce code_challenge response_type prompt login_hint claims request ui_locales resource",
  introspect: "token token_type_hint client_id",
  revoke: "token token_type_hint client_id",
};
const GRANTS: Record<string, string> = {
  code: "authorization_code",
  code_verifier: "authorization_code",
  redirect_uri: "authorization_code",
  refresh_token: "refresh_token",
  subject_token: "urn:ietf:params:oauth:grant-type:token-exchange",
  subject_token_type: "urn:ietf:params:oauth:grant-type:token-exchange",
};
const REGISTRATION =
  "client_name redirect_uris grant_types response_types scope client_uri logo_uri contacts token_endpoint_auth_method jwks_uri software_id software_statement";

export function oauthFields(client: { clientId: string; clientSecret: string }): Field[] {
  const credentials = { client_id: client.clientId, client_secret: client.clientSecret };
  const posted = Object.entries(OAUTH_PARAMETERS).flatMap(([endpoint, names]) =>
    names.split(" ").map((name): Field => {
      const others = endpoint === "token" && { grant_type: GRANTS[name] ?? "client_credentials" };
      const send = (text: string): Sent => ({
        path: `/oauth/${endpoint}`,
        init: { method: "POST", body: new URLSearchParams({ ...credentials, ...others, [name]: text }) },
      });
      return { name: `${endpoint} endpoint, ${name}`, max: BODY_MAX - 4 * 1024, encode: inForm, send };
    }),
  );
  const authorization = (OAUTH_PARAMETERS.par ?? "").split(" ").map((name) => {
    const address = (text: string) =>
      `/oauth/authorize?client_id=${client.clientId}&response_type=code&${name}=${text}`;
    return queryField(`authorization endpoint, ${name}`, "GET", address, {});
  });
  const registration = REGISTRATION.split(" ").map((name) =>
    jsonField(`registration endpoint, ${name}`, "/oauth/register", {}, (text) => ({
      redirect_uris: ["http://127.0.0.1/callback"],
      [name]: /s$/.test(name) ? [text] : text,
    })),
  );
  return [...posted, ...authorization, ...registration];
}

const HEADERS =
  "accept accept-encoding accept-language authorization cookie dpop forwarded idempotency-key if-match if-modified-since if-none-match mcp-method mcp-name mcp-protocol-version mcp-session-id origin prefer range referer sec-fetch-site traceparent tracestate user-agent x-forwarded-for x-forwarded-host x-forwarded-proto x-request-id";
const PLACES: Record<string, RequestInit> = {
  "/docs": { headers: { accept: "text/html" } },
  "/unknown-link": {},
};

export function headerFields(): Field[] {
  return Object.entries(PLACES).flatMap(([path, init]) => [
    ...HEADERS.split(" ").map((header) => headerField(path, path, header, init)),
    ...["Basic ", "Bearer ", "DPoP "].map((scheme) => headerField(path, path, "authorization", init, scheme)),
    queryField(`${path}, query`, "GET", (text) => `${path}?a=${text}`, {}),
    queryField(`${path}, path`, "GET", (text) => `${path}${text}`, {}, inPath),
  ]);
}

/** A text in a value that a schema describes: the path to it, and the value with it. */
type Place = { path: string; put(text: string): unknown };

const DEPTH_MAX = 6;

function placesIn(schema: JsonSchema, find: (reference: string) => JsonSchema, depth = 0): Place[] {
  if (depth > DEPTH_MAX) return [];
  const below = (one: JsonSchema) => placesIn(one, find, depth + 1);
  if (schema.$ref) return below(find(schema.$ref));
  if (schema.anyOf) return (schema.anyOf as JsonSchema[]).flatMap(below);
  if (schema.type === "array")
    return below((schema.items ?? {}) as JsonSchema).map(({ path, put }) => ({
      path: `${path}[]`,
      put: (text) => [put(text)],
    }));
  if (schema.type !== "object") return [{ path: "", put: (text) => text }];
  const { properties = {}, additionalProperties } = schema;
  const base = sampleOf(schema, find) as object;
  const members = Object.entries(properties as Record<string, JsonSchema>).flatMap(([name, member]) =>
    below(member).map(({ path, put }) => ({
      path: `${name}${path && `.${path}`}`,
      put: (text: string) => ({ ...base, [name]: put(text) }),
    })),
  );
  if (typeof additionalProperties !== "object") return members;
  const values = below(additionalProperties as JsonSchema).map(({ path, put }) => ({
    path: `*${path}`,
    put: (text: string) => ({ ...base, name: put(text) }),
  }));
  return [...members, ...values, { path: "* (its key)", put: (text) => ({ ...base, [text]: "x" }) }];
}

function sampleOf(schema: JsonSchema, find: (reference: string) => JsonSchema): unknown {
  if (schema.$ref) return sampleOf(find(schema.$ref), find);
  if (schema.anyOf) return sampleOf((schema.anyOf as JsonSchema[])[0] ?? {}, find);
  if (schema.const !== undefined) return schema.const;
  const [first] = schema.enum ?? (schema.examples as unknown[] | undefined) ?? [];
  if (first !== undefined) return first;
  if (schema.type === "array") return [sampleOf((schema.items ?? {}) as JsonSchema, find)];
  if (schema.type === "boolean") return true;
  if (schema.type === "integer") return schema.minimum ?? 1;
  if (schema.type !== "object") return schema.format === "uri" ? "https://example.com/" : "x";
  const { properties = {}, required = [] } = schema;
  return Object.fromEntries(
    required.map((name) => [name, sampleOf((properties as Record<string, JsonSchema>)[name] ?? {}, find)]),
  );
}
