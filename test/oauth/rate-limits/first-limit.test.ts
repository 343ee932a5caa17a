import { connect } from "node:net";
import { text } from "node:stream/consumers";
import test from "ava";
import { ENDPOINT_LIST } from "../../../server/oauth-endpoints.ts";
import type { Counter, RateLimitStore } from "../../../server/rate-limits/store.ts";
import { tableIn } from "../../harness/documentation.ts";
import { providerSettings } from "../../harness/providers/identity-provider.ts";
import { collectRouters } from "../../harness/routers.ts";
import { createSites, HOST, request, send } from "../../harness/site.ts";

const { storage, serve } = await createSites();
/** What a request does, in order: the counters that it asks, and the statements on the database. */
const steps: { counter?: string; sql?: string }[] = [];
const asked = new Map<string, { counter: Counter; key: string }>();
function observe(store: RateLimitStore): RateLimitStore {
  return {
    ...store,
    create(name, points, options) {
      const counter = store.create(name, points, options);
      const record = (key: string) => {
        steps.push({ counter: name });
        asked.set(name, { counter, key });
      };
      return Object.assign(Object.create(counter) as Counter, {
        penalty(key: string, ...more: [number?]) {
          record(key);
          return counter.penalty(key, ...more);
        },
        get(key: string) {
          record(key);
          return counter.get(key);
        },
      });
    },
  };
}
storage.onStatement((sql) => steps.push({ sql }));

const SETTINGS = {
  RATE_LIMIT: "on",
  DYNAMIC_REGISTRATION: "stateless",
  SMTP_URL: "smtp://localhost:9",
  SMTP_FROM: "linkgate@example.com",
  ...providerSettings("http://localhost:9"),
};
const routers = collectRouters();
const { port } = await serve(SETTINGS, storage, observe);

/** The counters, by what the documentation calls what they count. */
const COUNTERS: Record<string, string> = {
  "requests to `/v1` and MCP": "calls:address",
  "requests to the endpoints that clients call": "oauth:requests",
  "authorization requests": "authorization:start",
  "pending authorization requests": "authorization:pending",
  "pages and redirects of the authorization flow": "authorization:step",
  "requests for pages": "pages",
  "attempts to register": "registration",
  "requests for a password reset": "reset",
  "sign-ins with a passkey": "passkey",
  "refreshed first-party tokens": "refresh",
};

const rows = tableIn("rate-limits.md", "Which limit comes first").flatMap(([routes = "", limits = ""]) =>
  [...routes.matchAll(/`(?:([A-Z]+) )?(\/[^`]*)`/g)].map(([, method, path = ""]) => ({
    method,
    path,
    counters: limits.startsWith("none") ? [] : limits.split("; ").map((limit) => COUNTERS[limit] ?? limit),
  })),
);

/** Returns the counters of the row that fits best: with the method, and the longest path. */
function documentedFor(method: string, path: string): string[] | undefined {
  const fits = rows.filter((row) => (row.method ?? method) === method && isAtOrBelow(path, row.path));
  const best = fits.sort((one, other) => lengthOf(other.path) - lengthOf(one.path));
  return (best.find((row) => row.method) ?? best[0])?.counters;
}

/** A parameter matches anything, so it is less specific than any name. */
const lengthOf = (path: string) => path.replace(/:\w+/g, "").length;

function isAtOrBelow(path: string, documented: string): boolean {
  if (documented === "/") return path === "/";
  if (documented === "/:slug") return /^\/[^/]+$/.test(path) && !path.startsWith("/:");
  const pattern = documented.replace(/:\w+/g, "[^/]+");
  return new RegExp(`^${pattern}(/|$)`).test(path);
}

type Route = { method: string; path: string };
const routed = [...routers].flatMap(({ stack }) =>
  stack.flatMap(({ methods, path }) => methods.map((method): Route => ({ method, path: String(path) }))),
);
const oauth = ENDPOINT_LIST.filter(({ name }) => name !== "leak_reports").flatMap(({ path, methods }) =>
  methods.map((method): Route => ({ method, path })),
);
const others: Route[] = `
  / /docs /docs/search /docs/webhooks /llms.txt /assets/style.css /robots.txt /favicon.ico /healthz /healthz/domain /readyz /metrics
  /.well-known/oauth-authorization-server /.well-known/oauth-protected-resource /oauth/authorize/:uid
  /some-slug /some-slug+`
  .trim()
  .split(/\s+/)
  .map((path) => ({ method: "GET", path }));
const ROUTES = [...routed, ...oauth, ...others, { method: "POST", path: "/mcp" }]
  // Answered like a GET.
  .filter(({ method }) => method !== "HEAD");

const requestFor = ({ method, path }: Route, ...headers: string[]) =>
  request(method, path.replace(/:\w+/g, "x"), HOST, ...headers, "Connection: close");

test("every route of the product is in the table of first limits", (t) => {
  t.true(routed.length > 200);
  const missing = ROUTES.filter(({ method, path }) => !documentedFor(method, path));
  t.deepEqual(missing, []);
  const hasRoute = ({ path, method = "" }: (typeof rows)[number]) =>
    ROUTES.some((route) => isAtOrBelow(route.path, path) && route.method.includes(method));
  t.true(rows.every(hasRoute), JSON.stringify(rows.find((row) => !hasRoute(row))));
});

test.serial("nothing comes before the first limits of a route", async (t) => {
  for (const route of ROUTES) {
    const expected = documentedFor(route.method, route.path) ?? [];
    steps.length = 0;
    const headers = ["Content-Length: 0", "Authorization: Bearer lga_unknown", "Cookie: device=x"];
    await send(port, requestFor(route, ...headers));
    const counters = expected.map((counter) => ({ counter }));
    const first =
      counters.length > 0 ? steps.slice(0, counters.length) : steps.filter((step) => step.counter);
    t.deepEqual(first, counters, `${route.method} ${route.path}`);
  }
});

async function sendHead(head: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(head);
  return text(socket);
}

test.serial("beyond its first limits, a route reads no body and asks no database", async (t) => {
  for (const counter of new Set(Object.values(COUNTERS))) {
    const { counter: limiter, key } = asked.get(counter) ?? {};
    for (const route of ROUTES) {
      if (documentedFor(route.method, route.path)?.at(-1) !== counter) continue;
      const what = `${route.method} ${route.path}`;
      await limiter?.penalty(key as string, 100_000);
      steps.length = 0;
      const body = route.method === "GET" ? "Content-Length: 0" : "Content-Length: 60000";
      const headers = [
        "Content-Type: application/json",
        "Accept: text/html",
        "Authorization: Bearer lga_unknown",
      ];
      const response = await sendHead(requestFor(route, body, ...headers));
      t.regex(response, /^HTTP\/1\.1 429 /, what);
      t.regex(response, /^Retry-After: \d+\r$/im, what);
      if (/^Content-Type: text\/html/im.test(response)) t.regex(response, /Try again in /, what);
      t.is(steps.find(({ sql }) => sql)?.sql, undefined, what);
    }
    await limiter?.delete(key as string);
  }
});
