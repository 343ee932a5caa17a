import { randomBytes } from "node:crypto";
import test from "ava";
import { read } from "../../harness/clients/oauth.ts";
import { postRegistration } from "../../harness/clients/registration.ts";
import { startTestService } from "../../harness/service.ts";

const ORIGIN = "https://console.example.com";
const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless", ALLOWED_ORIGINS: ORIGIN });
test.after.always(() => service.close());

const redirect_uris = ["http://127.0.0.1/callback"];
const METADATA = "/.well-known/oauth-authorization-server";

test("the metadata lists the registration endpoint, and public clients", async (t) => {
  const { body } = await read(fetch(service.url + METADATA));
  t.is(body.registration_endpoint, `${service.url}/oauth/register`);
  t.true((body.token_endpoint_auth_methods_supported as string[]).includes("none"));
});

test("by default, the endpoint does not exist and is not listed", async (t) => {
  const plain = await startTestService();
  t.teardown(() => plain.close());
  t.is((await postRegistration(plain, { redirect_uris })).status, 404);
  t.false("registration_endpoint" in (await read(fetch(plain.url + METADATA))).body);
});

test("the response is uncached JSON that names what applies to the client", async (t) => {
  const { status, headers, body } = await postRegistration(service, {
    redirect_uris,
    client_name: " Example ",
  });
  t.is(status, 201);
  t.regex(headers.get("content-type") ?? "", /^application\/json/);
  t.is(headers.get("cache-control"), "no-store");
  const { client_id, client_id_issued_at, ...metadata } = body;
  t.regex(String(client_id), /^lgd_[A-Za-z0-9_-]+$/);
  t.true(Math.abs(Number(client_id_issued_at) - Date.now() / 1000) < 60);
  t.deepEqual(metadata, {
    client_name: "Example",
    redirect_uris,
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    application_type: "native",
  });
});

test("the name of this server in parentheses is left out of a client's name", async (t) => {
  const nameOf = async (client_name: string) =>
    (await postRegistration(service, { redirect_uris, client_name })).body;
  t.is((await nameOf("Amp MCP Client (linkgate)")).client_name, "Amp MCP Client");
  t.is((await nameOf("Amp MCP Client (links)")).client_name, "Amp MCP Client (links)");
  t.is((await nameOf("linkgate (official)")).error, "invalid_client_metadata");
});

for (const client_name of ["यूनिक्स", "Tiếng Việt – l’app", "ที่นี่", "⚙️ Tools"]) {
  test(`a client may be called ${client_name}`, async (t) => {
    const { body } = await postRegistration(service, { redirect_uris, client_name });
    t.is(body.client_name, client_name);
  });
}

/** Requested values that are replaced, and unknown metadata, which is ignored. */
const REPLACED: [string, Record<string, unknown>][] = [
  ["no name", {}],
  ["an empty name", { client_name: "" }],
  ["client_secret_basic", { token_endpoint_auth_method: "client_secret_basic" }],
  ["client_secret_post", { token_endpoint_auth_method: "client_secret_post" }],
  ["the code grant only", { grant_types: ["authorization_code"] }],
  ["further grants", { grant_types: ["authorization_code", "client_credentials", "implicit"] }],
  ["further response types", { response_types: ["code", "code id_token", "token"] }],
  ["a web application", { application_type: "web" }],
  ["an empty scope", { scope: "" }],
  ["a scope of another service", { scope: "read write" }],
  ["null members", { client_name: null, grant_types: null, token_endpoint_auth_method: null }],
  ["a client id of its own", { client_id: "lgc_other", client_secret: "x", client_secret_expires_at: 0 }],
  ["pages and contacts", { client_uri: "https://example.com", logo_uri: "x", contacts: [1] }],
  ["metadata that no standard has", { example_extension: "x", pages: { first: 1 } }],
  ["a localized name", { "client_name#ja": "例" }],
  ["keys", { jwks: { keys: [] }, jwks_uri: "https://example.com/jwks" }],
];

for (const [what, members] of REPLACED) {
  test(`a client that registers with ${what} becomes a public one`, async (t) => {
    const { status, body, text } = await postRegistration(service, { redirect_uris, ...members });
    t.is(status, 201, text);
    t.deepEqual(
      Object.keys(body).sort(),
      [
        "application_type",
        "client_id",
        "client_id_issued_at",
        "grant_types",
        "redirect_uris",
        "response_types",
        "token_endpoint_auth_method",
      ],
      text,
    );
    t.is(body.token_endpoint_auth_method, "none");
    t.deepEqual(body.grant_types, ["authorization_code", "refresh_token"]);
  });
}

// Random text can't be compressed.
const long = (bytes: number) => `https://a.example/${randomBytes(bytes).toString("base64url")}`;
const REFUSED: [what: string, body: unknown, code: string, rule: RegExp][] = [
  ["an empty body", "", "invalid_client_metadata", /must be a JSON object/],
  ["no JSON", "{", "invalid_client_metadata", /must be a JSON object/],
  ["an array", [], "invalid_client_metadata", /must be a JSON object/],
  ["a string", '"x"', "invalid_client_metadata", /must be a JSON object/],
  ["no redirect URIs", {}, "invalid_redirect_uri", /^redirect_uris must be an array of one or more/],
  ["an empty list of them", { redirect_uris: [] }, "invalid_redirect_uri", /^redirect_uris must be an array/],
  ["one as a string", { redirect_uris: redirect_uris[0] }, "invalid_redirect_uri", /must be an array/],
  ["one that is a number", { redirect_uris: [1] }, "invalid_redirect_uri", /array of one or more strings/],
  [
    "http",
    { redirect_uris: ["http://a.example/"] },
    "invalid_redirect_uri",
    /^redirect_uris\[0\] must use https/,
  ],
  [
    "a second one with a fragment",
    { redirect_uris: [...redirect_uris, "https://a.example/#x"] },
    "invalid_redirect_uri",
    /^redirect_uris\[1\] must not contain a fragment/,
  ],
  ["javascript", { redirect_uris: ["javascript:alert(1)"] }, "invalid_redirect_uri", /javascript scheme/],
  ["a wildcard", { redirect_uris: ["https://*.example.com/"] }, "invalid_redirect_uri", /wildcards/],
  [
    "a line break in one",
    { redirect_uris: ["https://a.example/\nhttps://b.example/"] },
    "invalid_redirect_uri",
    /ASCII/,
  ],
  [
    "a duplicate",
    { redirect_uris: [...redirect_uris, ...redirect_uris] },
    "invalid_redirect_uri",
    /duplicate/,
  ],
  [
    "too much for an id",
    { redirect_uris: [long(60), long(60), long(60)] },
    "invalid_redirect_uri",
    /at most 255 characters/,
  ],
  [
    "more than is compressed for an id",
    { redirect_uris: ["a", "b"].map((host) => `https://${host}.example/${"x".repeat(1024)}`) },
    "invalid_redirect_uri",
    /at most 255 characters/,
  ],
  [
    "a name that is a number",
    { redirect_uris, client_name: 7 },
    "invalid_client_metadata",
    /^client_name must be a string/,
  ],
  [
    "a name of 101 characters",
    { redirect_uris, client_name: "x".repeat(101) },
    "invalid_client_metadata",
    /^client_name must be 1 to 100 characters long/,
  ],
  [
    "a line break in the name",
    { redirect_uris, client_name: "a\nhttps://evil.example/" },
    "invalid_client_metadata",
    /control characters/,
  ],
  [
    "a name that closes the quotation of the consent page",
    { redirect_uris, client_name: "Claude” (verified by “Anthropic" },
    "invalid_client_metadata",
    /^client_name must not contain quotation marks/,
  ],
  [
    "a name with a direction override",
    { redirect_uris, client_name: "a\u202eb" },
    "invalid_client_metadata",
    /control characters/,
  ],
  [
    "a name that closes the quotation with an ornament",
    { redirect_uris, client_name: "Claude❞ by ❝Anthropic" },
    "invalid_client_metadata",
    /^client_name must not contain quotation marks/,
  ],
  [
    "a name that can't be seen",
    { redirect_uris, client_name: "\u3164\u2800" },
    "invalid_client_metadata",
    /invisible characters/,
  ],
  [
    "a name that covers the lines around it",
    { redirect_uris, client_name: `C${"\u0336\u035f".repeat(20)}` },
    "invalid_client_metadata",
    /^client_name must not have more than 3 combining marks in a row$/,
  ],
  [
    "client credentials only",
    { redirect_uris, grant_types: ["client_credentials"] },
    "invalid_client_metadata",
    /^grant_types must be an array that contains authorization_code/,
  ],
  [
    "grants as a string",
    { redirect_uris, grant_types: "authorization_code" },
    "invalid_client_metadata",
    /^grant_types/,
  ],
  [
    "the implicit grant",
    { redirect_uris, grant_types: ["implicit"], response_types: ["token"] },
    "invalid_client_metadata",
    /^grant_types/,
  ],
  [
    "response types without code",
    { redirect_uris, response_types: ["token"] },
    "invalid_client_metadata",
    /^response_types must be an array that contains code/,
  ],
  ["no response types", { redirect_uris, response_types: [] }, "invalid_client_metadata", /^response_types/],
  [
    "a key of its own",
    { redirect_uris, token_endpoint_auth_method: "private_key_jwt", jwks_uri: "https://example.com/" },
    "invalid_client_metadata",
    /^token_endpoint_auth_method must be none/,
  ],
  [
    "an unknown method",
    { redirect_uris, token_endpoint_auth_method: "x" },
    "invalid_client_metadata",
    /^token_endpoint_auth_method must be none/,
  ],
  [
    "a software statement",
    { redirect_uris, software_statement: "e30.e30." },
    "unapproved_software_statement",
    /^software_statement must be absent/,
  ],
];

for (const [what, body, code, rule] of REFUSED) {
  test(`a registration with ${what} is refused with ${code}`, async (t) => {
    const answer = await postRegistration(service, body);
    t.is(answer.status, 400, answer.text);
    t.deepEqual(Object.keys(answer.body), ["error", "error_description", "error_uri"]);
    t.is(answer.body.error, code);
    t.regex(String(answer.body.error_description), rule);
    t.is(answer.headers.get("cache-control"), "no-store");
  });
}

test("a registration must be JSON, and at most 16 KB", async (t) => {
  const form = await postRegistration(service, "redirect_uris=x", {
    "content-type": "application/x-www-form-urlencoded",
  });
  t.is(form.status, 415);
  t.is(form.body.error, "invalid_request");
  const large = await postRegistration(service, { redirect_uris, client_uri: "x".repeat(16_384) });
  t.is(large.status, 413);
  t.is(large.body.error, "invalid_request");
});

test("other methods and spellings of the path are rejected", async (t) => {
  for (const method of ["GET", "PUT", "DELETE"]) {
    const { status, headers } = await fetch(`${service.url}/oauth/register`, { method });
    t.is(status, 405, method);
    t.is(headers.get("allow"), "POST, OPTIONS");
  }
  for (const path of ["/oauth/register/", "/OAUTH/register", "/oauth/register/lgd_x"]) {
    const body = JSON.stringify({ redirect_uris });
    const headers = { "content-type": "application/json" };
    const { status } = await fetch(service.url + path, { method: "POST", headers, body, redirect: "manual" });
    t.not(status, 201, path);
  }
});

test("scripts on allowed origins can register, and others can't read the response", async (t) => {
  const url = `${service.url}/oauth/register`;
  for (const [origin, allowed] of [
    [ORIGIN, ORIGIN],
    [service.url, service.url],
    ["https://evil.example", null],
    ["null", null],
  ] as const) {
    const requested = { origin, "access-control-request-method": "POST" };
    const preflight = await fetch(url, {
      method: "OPTIONS",
      headers: { ...requested, "access-control-request-headers": "content-type" },
    });
    t.is(preflight.headers.get("access-control-allow-origin"), allowed, origin);
    if (allowed) t.is(preflight.headers.get("access-control-allow-headers"), "content-type");
    const { headers } = await postRegistration(service, { redirect_uris }, { origin });
    t.is(headers.get("access-control-allow-origin"), allowed, origin);
    t.is(headers.get("access-control-allow-credentials"), null, origin);
  }
});
