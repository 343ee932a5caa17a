import test from "ava";
import { parse } from "node-html-parser";
import { OPERATOR } from "../../../resources/events/types.ts";
import { ENDPOINT_LIST, METADATA_PATHS } from "../../../server/oauth-endpoints.ts";
import { EMBEDDED_STYLE } from "../../../server/ui/page.ts";
import { newApi } from "../../harness/clients/api.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startDomainService, storeDomain } from "../../harness/domains.ts";
import { collectRouters } from "../../harness/routers.ts";
import { createSites, request, send } from "../../harness/site.ts";

const HOST = "go.iso.example";
const URL = "https://example.com/spring";

const routers = collectRouters();
const { service, at, addDomain } = await startDomainService({
  TRUST_PROXY: "1",
  RATE_LIMIT: "on",
  DYNAMIC_REGISTRATION: "stateless",
  SECURITY_CONTACT: "mailto:a@b.example",
});
const own = new globalThis.URL(service.url).host;
const { app, user } = await createApp(service);
const api = await newApi(service, "premium");
const browser = new TestBrowser(service.url);
await browser.signIn(await browser.open(`${service.url}/auth/login`), user);
const credentials = {
  authorization: `Bearer ${await service.token(app)}`,
  cookie: await browser.jar.getCookieString(service.url),
};

const sites = await createSites();
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const routed = [...routers].flatMap(({ stack }) => stack.map(({ path }) => `${path}`));
const found = [
  ...routed.map((path) => path.replaceAll(/:\w+/g, "unknown")),
  ...ENDPOINT_LIST.map(({ path }) => path),
  ...METADATA_PATHS.flatMap((path) => [path, `${path}/mcp`]),
  ...["", "/v1", "/mcp"].map((path) => `/.well-known/oauth-protected-resource${path}`),
  ...["/mcp", "/v1", "/metrics", "/healthz", "/healthz/domain?name=x", "/readyz", "/favicon.ico", "/docs"],
  ...["/docs/webhooks", "/llms.txt", "/assets/style.css", "/.well-known/security.txt", "/openapi.json"],
];
const paths = [...new Set(found)].filter((path) => path !== "/" && path !== "/robots.txt");

/** What no response of a domain has. */
const FORBIDDEN =
  /^(set-cookie|strict-transport-security|www-authenticate|access-control-.*|dpop-nonce|cross-origin-.*|link)$/;
const OWN_CONTENT = /<form|"issuer"|"keys"|"resource"|csrf|linkgate|"status":"(ok|ready)"/i;

test("no address of the service is served at a domain, with no method, cookie or token", async (t) => {
  await addDomain(api, HOST);
  t.true(paths.length > 180, `${paths.length}`);

  async function ask(path: string, method: string, accept: string): Promise<string | undefined> {
    const preflight = { origin: service.url, "access-control-request-method": "POST" };
    const { status, headers, text } = await at(HOST, path, {
      method,
      headers: { ...credentials, ...(method === "OPTIONS" && preflight), accept },
    });
    // What has the form of a slug is read only: RFC 9110 §9.3.7 and §15.5.6.
    const isReadOnly = headers.get("allow") === "GET, HEAD, OPTIONS" && method !== "GET";
    const isRefused = status === 404 || (isReadOnly && status === (method === "OPTIONS" ? 204 : 405));
    const leaked = [...headers.keys()].filter((name) => FORBIDDEN.test(name) || name === "location");
    const isPage = accept === "text/html";
    const type = isPage ? "text/html; charset=utf-8" : "application/problem+json";
    if (status !== 204 && headers.get("content-type") !== type) leaked.push("content-type");
    if (isPage && method !== "HEAD" && !text.includes(`<p class="brand"><bdi>${HOST}</bdi></p>`))
      leaked.push("brand");
    if (OWN_CONTENT.test(text.replaceAll(`${service.url}/docs/errors/`, ""))) leaked.push(text);
    if (isRefused && leaked.length === 0) return undefined;
    return `${method} ${path} ${accept}: ${status} ${leaked}`;
  }

  const wrong: (string | undefined)[] = [];
  for (const path of paths) {
    const pages = ["GET", "HEAD", "POST"].map((method) => ask(path, method, "text/html"));
    const programs = METHODS.map((method) => ask(path, method, "application/json"));
    wrong.push(...(await Promise.all([...pages, ...programs])).filter(Boolean));
  }
  t.deepEqual(wrong, []);
});

const CLOSE = "Connection: close";
const { port } = new globalThis.URL(service.url);
const ask = (target: string, ...headers: string[]) =>
  send(Number(port), request("GET", target, ...headers, CLOSE));
const statusOf = (response: string) => Number(/^HTTP\/1\.1 (\d+) /.exec(response)?.[1]);

test("every spelling of a domain's host is the domain", async (t) => {
  const host = "go.spelled.example";
  await addDomain(api, host);
  await api.createLink({ url: URL, domain: host, slug: "spring" });
  await addDomain(api, "go.müller.example");
  await api.createLink({ url: URL, domain: "go.müller.example", slug: "spring" });
  for (const spelling of ["GO.Spelled.EXAMPLE", `${host}.`, `${host}:80`, `${host}.:80`])
    t.regex(
      await ask("/spring", `Host: ${spelling}`),
      /^HTTP\/1\.1 302 [\s\S]*^Location: https:\/\/example\.com/m,
      spelling,
    );
  for (const origin of [
    ...[`http://${host}`, `HTTP://GO.SPELLED.EXAMPLE`, `http://${host}:80`, `http://${host}.`],
  ])
    t.is(statusOf(await ask(`${origin}/spring`, `Host: ${host}`)), 302, origin);
  t.is(statusOf(await ask(`http://${host}`, `Host: ${host}`)), 404, "its root");
  t.is(statusOf(await ask("/spring", "Host: go.xn--mller-kva.example")), 302);
  t.is(statusOf(await ask("/spring", "Host: GO.XN--MLLER-KVA.example.")), 302);
});

const SPELLED = "go.refused.example";
const REFUSED: [title: string, status: number, target: string, ...headers: string[]][] = [
  ["another port", 421, "/spring", `Host: ${SPELLED}:443`],
  ["two final dots", 421, "/spring", `Host: ${SPELLED}..`],
  ["a user before the host", 421, "/spring", `Host: user@${SPELLED}`],
  ["a path after the host", 421, "/spring", `Host: ${SPELLED}/x`],
  ["a host below it", 421, "/spring", `Host: x.${SPELLED}`],
  ["an address", 421, "/spring", "Host: 192.0.2.1"],
  ["a U-label", 421, "/spring", "Host: go.müller.example"],
  ["no host", 421, "/spring", "Host:"],
  ["two hosts", 400, "/spring", `Host: ${SPELLED}`, `Host: ${own}`],
  ["a target of another host", 421, `http://${own}/auth/login`, `Host: ${SPELLED}`],
  ["a target of the domain at the service's host", 421, `http://${SPELLED}/spring`, `Host: ${own}`],
  ["a target with a user", 421, `http://user@${SPELLED}/spring`, `Host: ${SPELLED}`],
  ["a forwarded host", 404, "/spring", `Host: ${own}`, `X-Forwarded-Host: ${SPELLED}`],
  ["another forwarded header", 404, "/spring", `Host: ${own}`, `Forwarded: host=${SPELLED}`],
  ["a coding that isn't chunked", 501, "/spring", `Host: ${SPELLED}`, "Transfer-Encoding: gzip, chunked"],
];

test("no header but one Host chooses a domain", async (t) => {
  await addDomain(api, SPELLED);
  await api.createLink({ url: URL, domain: SPELLED, slug: "spring" });
  for (const [title, status, target, ...headers] of REFUSED) {
    const response = await ask(target, ...headers);
    t.is(statusOf(response), status, `${title}: ${headers[0]}\n${response}`);
    t.notRegex(response, /^(location|set-cookie):/im, title);
  }
  const forwarded = await ask("/spring", `Host: ${SPELLED}`, `X-Forwarded-Host: ${own}`);
  t.is(statusOf(forwarded), 302, "nor takes one away");
});

test("a domain of a service with https has its spellings with that port, and no HSTS", async (t) => {
  const { storage, serve } = sites;
  const { organization } = await storage.organizations.create("Secure", "growth", OPERATOR);
  await storeDomain(storage, organization.id, HOST);
  const secure = await serve();
  const answerFor = (host: string, path = "/") =>
    send(secure.port, request("GET", path, `Host: ${host}`, "Accept: text/html", CLOSE));
  for (const host of [HOST, `${HOST}:443`, `${HOST}.`]) {
    const response = await answerFor(host);
    t.is(statusOf(response), 404, host);
    t.notRegex(response, /strict-transport-security|linkgate/i, host);
  }
  // A host that isn't verified yet, too: what a browser remembers would hold for all hosts below it.
  for (const host of [`${HOST}:80`, "soon.iso.example"]) {
    const response = await answerFor(host);
    t.is(statusOf(response), 421, host);
    t.notRegex(response, /strict-transport-security/i, host);
  }
  const twice = request("GET", "/", `Host: ${HOST}`, `Host: ${HOST}`, "Accept: text/html", CLOSE);
  t.notRegex(await send(secure.port, twice), /strict-transport-security/i, "also in an error");
});

// Tokens, and the numbers of limits and times.
const VOLATILE = /[\w-]{16,}|\d+/g;

test("a domain changes nothing at the service's own host", async (t) => {
  const other = await newApi(service);
  const some = [
    ...ENDPOINT_LIST.map(({ path }) => path),
    ...METADATA_PATHS,
    "/",
    "/auth/login",
    "/docs",
    "/absent",
  ];
  const read = async (path: string) => {
    const { status, headers, text } = await sendRaw(service.url, path, { headers: ["accept", "text/html"] });
    return JSON.stringify([status, { ...headers, date: "" }, text]).replaceAll(VOLATILE, "");
  };
  const before = await Promise.all(some.map(read));
  await addDomain(other, "unchanged.iso.example", { default: true });
  const after = await Promise.all(some.map(read));
  for (const [index, path] of some.entries()) t.is(after[index], before[index], path);
  t.notRegex(after.join(), /unchanged\.iso\.example/);
});

test("a domain is no origin and no return address of the service", async (t) => {
  await addDomain(api, "origin.iso.example");
  for (const origin of ["http://origin.iso.example", "https://origin.iso.example"]) {
    for (const path of ["/v1/links", "/mcp", "/oauth/token", "/oauth/userinfo"]) {
      const headers = { origin, "access-control-request-method": "POST" };
      for (const method of ["OPTIONS", "POST"]) {
        const reply = await sendRaw(service.url, path, { method, headers: Object.entries(headers).flat() });
        t.is(reply.headers["access-control-allow-origin"], undefined, `${method} ${path} ${origin}`);
      }
    }
    const form = { username: user.username, password: user.password, return_to: `${origin}/spring` };
    const signIn = (headers: string[]) =>
      sendRaw(service.url, "/auth/login", {
        method: "POST",
        headers: ["content-type", "application/x-www-form-urlencoded", "accept", "text/html", ...headers],
        body: new URLSearchParams(form).toString(),
      });
    t.is((await signIn(["origin", origin])).status, 403);
    const returned = await signIn(["origin", service.url]);
    t.is(returned.status, 303);
    t.notRegex(returned.headers.location ?? "", /iso\.example/);
    const asked = authorizeUrl(service, app, { redirect_uri: `${origin}/callback` });
    const answer = await sendRaw(service.url, asked.slice(service.url.length), {
      headers: ["accept", "text/html"],
    });
    t.is(answer.status, 400);
    t.is(answer.headers.location, undefined);
  }
});

test("no slug of the service's own host is that of a domain, nor the other way round", async (t) => {
  const host = "apart.iso.example";
  const { id } = await addDomain(api, host);
  const stranger = await newApi(service);
  await stranger.createLink({ url: `${URL}?stranger`, domain: own, slug: `${id}/spring` });
  t.is((await at(host, "/spring")).status, 404);
  await api.createLink({ url: URL, domain: host, slug: "summer" });
  for (const separator of ["/", "//", ":", "%3A", "."])
    t.is((await at(own, `/${id}${separator}summer`)).status, 404, separator);
  const taken = { json: { url: URL, domain: host, slug: "spring" } };
  t.is((await api.send("POST", "/v1/links", taken)).status, 201, "nor does it take the slug");
});

const CARD = { title: "Spring sale", description: null, image_url: null };
const PREVIEW_PROGRAM = "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)";

test("pages at a domain show its host, and need nothing of the service", async (t) => {
  const host = "pages.iso.example";
  await addDomain(api, host);
  const link = (fields: object) => api.createLink({ url: URL, domain: host, ...fields });
  const [shown, asked, card, archived] = [
    await link({}),
    await link({ password: "spring" }),
    await link({ card: CARD }),
    await link({}),
  ];
  await api.send("PATCH", `/v1/links/${archived.id}`, { json: { archived: true } });
  const pages: [path: string, status: number, title: RegExp][] = [
    [`/${shown.slug}+`, 200, /This link leads to/],
    [`/${asked.slug}+`, 200, /password-protected/],
    [`/${asked.slug}`, 200, /password-protected/],
    [`/${archived.slug}`, 410, /no longer available/],
    ["/absent", 404, /Link not found/],
    ["/", 404, /short links only/],
    ["/.well-known/unknown", 404, /not found/],
  ];
  for (const [path, status, title] of pages) {
    const { text, headers, ...reply } = await at(host, path, { headers: { accept: "text/html" } });
    t.is(reply.status, status, path);
    t.regex(text, title, path);
    t.notRegex(text, /linkgate|\bsrc=|<link\b|<script\b|localhost/i, path);
    const page = parse(text);
    t.is(page.querySelector(".brand")?.text, host, path);
    t.true(page.querySelector("title")?.text.startsWith(`${host} · `), path);
    const policy = headers.get("content-security-policy") ?? "";
    t.true(policy.includes(`style-src ${EMBEDDED_STYLE}`), "the embedded style is allowed");
    t.notRegex(policy, /self|form-action/);
    t.is(headers.get("cross-origin-opener-policy"), null);
  }
  const preview = await at(host, `/${card.slug}`, { headers: { "user-agent": PREVIEW_PROGRAM } });
  t.is(preview.status, 200);
  const about = parse(preview.text).querySelector("[property='og:url']")?.attributes.content;
  t.deepEqual([about, card.short_url], Array(2).fill(`http://${host}/${card.slug}`));
  t.notRegex(preview.text, /linkgate|localhost/i);
});

test("a password is entered at the domain", async (t) => {
  const host = "secret.iso.example";
  await addDomain(api, host);
  const { slug } = await api.createLink({ url: URL, domain: host, password: "spring" });
  const enter = (password: string) =>
    at(host, `/${slug}?utm_source=x`, {
      method: "POST",
      headers: {
        accept: "text/html",
        origin: `http://${host}`,
        "content-type": "application/x-www-form-urlencoded",
      },
      body: new URLSearchParams({ password }).toString(),
    });
  const entered = await enter("spring");
  t.deepEqual([entered.status, entered.headers.get("location")], [303, `${URL}?utm_source=x`]);
  t.is(entered.headers.get("set-cookie"), null);
  const wrong = await enter("guess");
  t.is(wrong.status, 403);
  t.is(parse(wrong.text).querySelector(".brand")?.text, host);
  t.regex(parse(wrong.text).querySelector("[role=alert]")?.text ?? "", /password is wrong/);
});
