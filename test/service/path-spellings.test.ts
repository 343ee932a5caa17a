import test from "ava";
import { ENDPOINT_LIST, METADATA_PATHS } from "../../server/oauth-endpoints.ts";
import { shareApp } from "../harness/clients/authorization.ts";
import { type Fields, formOf } from "../harness/clients/authorization-request.ts";
import { basic } from "../harness/clients/oauth.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";

// More than a thousand requests.
export const stage = "long";

const { service, app, own, user } = await shareApp({
  DYNAMIC_REGISTRATION: "stateless",
  SECURITY_CONTACT: "mailto:a@b.example",
});
const token = await service.token(app);
const browser = new TestBrowser(service.url);
await browser.signIn(await browser.open(`${service.url}/auth/login`), user);

type Ask = NonNullable<Parameters<typeof sendRaw>[2]>;
const READ: Ask = {};
const CALL: Ask = { headers: ["authorization", `Bearer ${token}`] };
const VISIT: Ask = {
  headers: ["accept", "text/html", "cookie", await browser.jar.getCookieString(service.url)],
};
const post = (type: string, body: string, ...headers: string[]): Ask => ({
  method: "POST",
  headers: ["content-type", type, ...headers],
  body,
});
const form = (fields: Fields) =>
  post("application/x-www-form-urlencoded", `${formOf(fields)}`, "authorization", basic(app).authorization);

const all = (request: Ask, ...paths: string[]) => Object.fromEntries(paths.map((path) => [path, request]));

const RESOURCES = ["", "/v1", "/mcp", "/mcp/read"].map(
  (path) => `/.well-known/oauth-protected-resource${path}`,
);
/** Requests that succeed or are refused, but not with 404. */
const REQUESTS: Record<string, Ask> = {
  ...all(READ, ...METADATA_PATHS, ...RESOURCES),
  ...all(READ, "/oauth/jwks", "/healthz", "/readyz", "/metrics", "/favicon.ico", "/robots.txt", "/llms.txt"),
  ...all(READ, "/v1/openapi.json", "/.well-known/security.txt"),
  ...all(CALL, "/oauth/userinfo", "/mcp", "/mcp/read"),
  ...all(VISIT, "/device", "/oauth/authorize", "/oauth/authorize/unknown", "/interaction/unknown", "/docs"),
  ...all(VISIT, "/auth/login", "/auth/register", "/dashboard", "/dashboard/me", "/dashboard/account"),
  "/oauth/token": form({ grant_type: "client_credentials" }),
  "/oauth/revoke": form({ token: "lga_unknown" }),
  "/oauth/introspect": form({ token }),
  "/oauth/par": form({}),
  "/oauth/device": form({}),
  "/oauth/register": post("application/json", '{"redirect_uris":["http://127.0.0.1/callback"]}'),
  "/auth/refresh": post("application/json", "{}"),
};

async function linksOf(path: string): Promise<string[]> {
  const page = await browser.open(service.url + path);
  const found = page.html.querySelectorAll("a[href], link[href], script[src]");
  return found
    .map(({ attributes: { href, src } }) => new URL((href ?? src) as string, page.url))
    .filter(({ origin }) => origin === service.url)
    .map(({ pathname }) => pathname);
}

async function operations(): Promise<string[]> {
  const document = (await (await fetch(`${service.url}/v1/openapi.json`)).json()) as {
    paths: Record<string, { get?: object }>;
  };
  return Object.entries(document.paths)
    .filter(([, { get }]) => get)
    .map(([path]) => path.replaceAll(/\{\w+\}/g, "unknown"));
}

const escapeLast = (text: string) =>
  text.replace(/\w$/, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);

/** Returns a path in spellings that a router could take for the same path. */
function spellingsOf(path: string): string[] {
  const [, first = "", ...rest] = path.split("/");
  const spellings = [
    ...[`${path}/`, `${path}//`, `/${path}`, `/.${path}`, `/x/..${path}`, `${path}%2F`, `${path}%00`],
    ...[`${path};x=1`, `${path}.`, `${path}%20`, path.toUpperCase(), escapeLast(path)],
    path.replace(/\w$/, (letter) => letter.toUpperCase()),
    `/${[first.toUpperCase(), ...rest].join("/")}`,
    `/${[escapeLast(first), ...rest].join("/")}`,
    `/${[first, ...rest].join("//")}`,
    `/${[first, ...rest].join("%2F")}`,
  ];
  return [...new Set(spellings)].filter((spelling) => spelling !== path);
}

// Both name the same resource (RFC 9728 §3.2), so both have a document, each with its own address.
const ALSO_KNOWN = new Set(
  ["/mcp/", "/mcp/read/"].map((path) => `/.well-known/oauth-protected-resource${path}`),
);

const VOLATILE = /\b(lg[a-z]_|req_|usr_|lnk_)?[\w-]{16,}\b|\d{4,}|0\.\d+|\b\d+ s\b/g;

async function ask(path: string, request: Ask) {
  const { status, headers, text } = await sendRaw(service.url, path, request);
  const { location, allow } = headers;
  const shown = path.startsWith("/metric") ? "" : text; // changes with every request
  const [type, cache] = [headers["content-type"], headers["cache-control"]];
  return { status, type, cache, location, allow, text: shown };
}

const paths = {
  ...REQUESTS,
  ...all(CALL, ...(await operations())),
  ...all(VISIT, ...(await linksOf("/")), ...(await linksOf("/docs"))),
  ...all(VISIT, ...(await linksOf(`/dashboard/organizations/${own.id}`))),
};

test("a path that is spelled otherwise is not found, or answered as the path itself", async (t) => {
  t.true(Object.keys(paths).length > 80, `${Object.keys(paths).length}`);
  for (const { name, path } of ENDPOINT_LIST) t.true(path in REQUESTS || name === "leak_reports", path);
  const wrong: string[] = [];
  for (const [path, request] of Object.entries(paths)) {
    const expected = await ask(path, request);
    for (const spelling of spellingsOf(path)) {
      if (ALSO_KNOWN.has(spelling)) continue;
      const found = await ask(spelling, request);
      if (found.status === 404 || found.status === 400 || found.status === 421) continue;
      if (found.location === path || found.location === service.url + path) continue;
      const [one, other] = [found, expected].map((answer) => JSON.stringify(answer).replace(VOLATILE, ""));
      if (one !== other)
        wrong.push(
          `${spelling}: ${found.status} ${found.type} ${found.location ?? ""}, not ${expected.status}`,
        );
    }
  }
  t.deepEqual(wrong, []);
});
