import test from "ava";
import { basic, createApp, type Fields, formOf } from "../../harness/clients/oauth.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService({
  DYNAMIC_REGISTRATION: "stateless",
  SECURITY_CONTACT: "mailto:a@b.example",
});
const { app, own, user } = await createApp(service);
const token = await service.token(app);
const browser = new TestBrowser(service.url);
await browser.signIn(await browser.open(`${service.url}/auth/login`), user);
type Ask = { method?: string; headers?: Record<string, string>; body?: string };

const READ: Ask = {};
const CALL: Ask = { headers: { authorization: `Bearer ${token}` } };
const VISIT: Ask = {
  headers: { accept: "text/html", cookie: await browser.jar.getCookieString(service.url) },
};
const form = (fields: Fields): Ask => ({
  method: "POST",
  headers: { ...basic(app), "content-type": "application/x-www-form-urlencoded" },
  body: formOf(fields).toString(),
});

/** Requests of the authorization server that succeed or are refused, but not with 404. */
const OAUTH: Record<string, Ask> = {
  "/.well-known/oauth-authorization-server": READ,
  "/.well-known/oauth-authorization-server/mcp": READ,
  "/.well-known/openid-configuration": READ,
  "/.well-known/openid-configuration/mcp": READ,
  "/oauth/authorize": VISIT,
  "/oauth/authorize/unknown": VISIT,
  "/oauth/token": form({ grant_type: "client_credentials" }),
  "/oauth/revoke": form({ token: "lga_unknown" }),
  "/oauth/introspect": form({ token }),
  "/oauth/par": form({}),
  "/oauth/register": {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ redirect_uris: ["http://127.0.0.1/callback"] }),
  },
  "/oauth/userinfo": CALL,
  "/oauth/jwks": READ,
  "/interaction/unknown": VISIT,
};

const OTHERS: Record<string, Ask> = {
  "/.well-known/oauth-protected-resource": READ,
  "/.well-known/oauth-protected-resource/v1": READ,
  "/.well-known/oauth-protected-resource/mcp": READ,
  "/.well-known/security.txt": READ,
  "/healthz": READ,
  "/readyz": READ,
  "/metrics": READ,
  "/favicon.ico": READ,
  "/robots.txt": READ,
  "/llms.txt": READ,
  "/v1/openapi.json": READ,
  "/docs": VISIT,
  "/mcp": CALL,
  "/auth/login": VISIT,
  "/auth/register": VISIT,
  "/auth/refresh": { method: "POST", headers: { "content-type": "application/json" }, body: "{}" },
  "/dashboard": VISIT,
  "/dashboard/me": VISIT,
  "/dashboard/account": VISIT,
};

/** Returns the paths that a page links to. */
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
  const all = [
    `${path}/`,
    `${path}//`,
    path.toUpperCase(),
    path.replace(/\w$/, (letter) => letter.toUpperCase()),
    `/${[first.toUpperCase(), ...rest].join("/")}`,
    `/${path}`,
    `/${[first, ...rest].join("//")}`,
    `/.${path}`,
    `/x/..${path}`,
    escapeLast(path),
    `/${[escapeLast(first), ...rest].join("/")}`,
    `/${[first, ...rest].join("%2F")}`,
    `${path}%2F`,
    `${path}%00`,
    `${path};x=1`,
    `${path}.`,
    `${path}%20`,
  ];
  return [...new Set(all)].filter((spelling) => spelling !== path);
}

// Both name the same resource (RFC 9728 §3.2), so both have a document, each with its own address.
const ALSO_KNOWN = new Set(["/.well-known/oauth-protected-resource/mcp/"]);

const VOLATILE = /\b(lg[a-z]_|req_|usr_|lnk_)?[\w-]{16,}\b|\d{4,}|0\.\d+|\b\d+ s\b/g;

async function ask(path: string, { method, headers, body }: Ask) {
  const answer = await sendRaw(service.url, path, {
    ...(method && { method }),
    headers: Object.entries(headers ?? {}).flat(),
    ...(body !== undefined && { body }),
  });
  const { status, headers: sent, text } = answer;
  const { location, allow } = sent;
  const shown = path.startsWith("/metric") ? "" : text; // changes with every request
  return { status, type: sent["content-type"], cache: sent["cache-control"], location, allow, text: shown };
}

const paths = {
  ...OAUTH,
  ...OTHERS,
  ...Object.fromEntries((await operations()).map((path) => [path, CALL])),
  ...Object.fromEntries(
    [
      ...(await linksOf("/")),
      ...(await linksOf("/docs")),
      ...(await linksOf(`/dashboard/organizations/${own.id}`)),
    ].map((path) => [path, VISIT]),
  ),
};

test.after.always(() => service.close());

test("the metadata names no endpoint that this test leaves out", async (t) => {
  const { text } = await ask("/.well-known/oauth-authorization-server", READ);
  const urls = Object.values(JSON.parse(text)).filter((value) =>
    String(value).startsWith(`${service.url}/oauth`),
  );
  t.true(urls.length > 5);
  t.deepEqual(
    urls.map((url) => new URL(String(url)).pathname).filter((path) => !(path in OAUTH)),
    [],
  );
});

test("a path that is spelled otherwise is not found, or answered as the path itself", async (t) => {
  t.true(Object.keys(paths).length > 80, `${Object.keys(paths).length}`);
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
