import { execFileSync } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { parse, parseAllDocuments } from "yaml";
import manifest from "../../package.json" with { type: "json" };
import type { DomainView } from "../../resources/domains/schema.ts";
import { HAS_CADDY, prepareCaddy } from "../harness/caddy.ts";
import { basic } from "../harness/clients/oauth.ts";
import { sendRaw, sendRequest } from "../harness/clients/raw.ts";
import { startNameServer } from "../harness/name-server.ts";
import { prepareServers } from "../harness/new-server.ts";
import { HAS_NGINX, prepareNginx, type TestProxy } from "../harness/nginx.ts";
import { freePort, ROOT } from "../harness/program.ts";
import { bearer, startTestService, type TestOrganization } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";

const read = (file: string) => readFileSync(`${ROOT}docs/operate/deploy/${file}`, "utf8");
const compose = parse(read("compose.yaml"));
const manifests = parseAllDocuments(read("kubernetes.yaml")).map((document) => document.toJS());
const pod = manifests.find(({ kind }) => kind === "Deployment").spec.template.spec;
const [container] = pod.containers;

test("every optional package is in the list of what to install", (t) => {
  const [, list = ""] =
    /\n## Optional packages\n(.*?)\n## /s.exec(readFileSync(`${ROOT}docs/operate/deploy.md`, "utf8")) ?? [];
  for (const name of Object.keys(manifest.peerDependencies))
    t.true(list.includes(name.replace("@opentelemetry/", "")), name);
});

test("the unit and the image start the server with the options of npm start", (t) => {
  const [options] = /--max-semi-space-size=\d+/.exec(manifest.scripts.start) ?? [];
  t.truthy(options);
  t.true(read("Containerfile").includes(`'#!/nodejs/bin/node ${options}'`));
  const installed = `/opt/linkgate/node_modules/linkgate/${manifest.bin.linkgate}`;
  t.true(read("linkgate.service").includes(`\nExecStart=/usr/bin/node ${options} ${installed} start\n`));
});

test("the command has no options of Node: env of BusyBox, which Alpine Linux has, passes none on", (t) => {
  const launcher = readFileSync(`${ROOT}${manifest.bin.linkgate}`, "utf8");
  t.is(launcher.split("\n")[0], "#!/usr/bin/env node");
});

test("the examples only use settings that exist", (t) => {
  const settings = new Set(
    [...readFileSync(`${ROOT}docs/settings.md`, "utf8").matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name),
  );
  const assignments = read("linkgate.service") + read("Containerfile");
  const assigned = Array.from(assignments.matchAll(/^(?:Environment=|ENV )(.*)$/gm), ([, line = ""]) => line);
  const used: string[] = [
    ...Object.keys(compose.services.linkgate.environment),
    ...container.env.map(({ name }: { name: string }) => name),
    ...Array.from(assigned.join(" ").matchAll(/(\w+)=/g), ([, name]) => name),
  ];
  t.true(used.length > 12);
  for (const name of used) t.true(settings.has(name), name);
});

test("each example kills a server later than it ends by itself", (t) => {
  // See docs/operations.md: 20 seconds more than SHUTDOWN_DELAY.
  const { linkgate } = compose.services;
  t.true(Number.parseInt(linkgate.stop_grace_period, 10) >= linkgate.environment.SHUTDOWN_DELAY + 20);
  const delay = container.env.find(({ name }: { name: string }) => name === "SHUTDOWN_DELAY").value;
  t.true(pod.terminationGracePeriodSeconds >= Number(delay) + 20);
  t.true(Number(/^TimeoutStopSec=(\d+)$/m.exec(read("linkgate.service"))?.[1]) >= 20);
});

test("pods run without privileges, as the user of the image, and can't write to their root", (t) => {
  t.like(pod.securityContext, { runAsNonRoot: true, runAsUser: 65532 });
  t.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
});

test("the files for Traefik refer to each other by names that exist", (t) => {
  const { entryPoints, certificatesResolvers, providers } = parse(read("traefik.yaml"));
  const { routers, services } = parse(read("traefik-routers.yaml")).http;
  const [web, secure] = [entryPoints.web.http.redirections.entryPoint, entryPoints.websecure.http];
  t.true(Object.hasOwn(entryPoints, web.to));
  const { acme } = certificatesResolvers[secure.tls.certResolver];
  t.true(Object.hasOwn(entryPoints, acme.httpChallenge.entryPoint));
  t.is(path.basename(providers.file.filename), "traefik-routers.yaml");
  const all = Object.values<{ rule: string; entryPoints: string[]; service: string }>(routers);
  t.deepEqual(
    all.map(({ rule }) => rule),
    ["Host(`links.example.com`)", "Host(`go.example.com`)"],
  );
  for (const router of all) {
    t.deepEqual(router.entryPoints, [web.to]);
    t.is(services[router.service].loadBalancer.healthCheck.path, "/healthz");
  }
});

const ANALYZE = "/usr/bin/systemd-analyze";
const unitTitle = "systemd rates the exposure of the unit below 2";
if (!existsSync(ANALYZE)) skip(unitTitle, "systemd-analyze is not installed");
else
  test(unitTitle, (t) => {
    const unit = `${ROOT}docs/operate/deploy/linkgate.service`;
    const report = execFileSync(ANALYZE, ["security", "--offline=yes", unit], { encoding: "utf8" });
    const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(report) ?? [];
    t.true(Number(exposure) < 2, exposure);
  });

const MB = 2 ** 20;

async function formOf(bytes: number, token: string) {
  const rows = Array.from({ length: bytes / 1000 }, (_, index) =>
    `https://example.com/${index}/`.padEnd(990, "x"),
  );
  const form = new FormData();
  form.set("dry_run", "true");
  form.set("file", new File([`url\n${rows.join("\n")}\n`.padEnd(bytes, "\n")], "links.csv"));
  const encoded = new Response(form);
  const type = { "content-type": encoded.headers.get("content-type") ?? "", accept: "application/json" };
  return { body: await encoded.text(), headers: { ...type, ...bearer(token) } };
}

type Sent = { body?: string | undefined; headers?: Record<string, string> };

/** Sends JSON, unless the headers say otherwise, and returns the JSON of the response. */
async function sendTo(proxy: TestProxy, method: string, path: string, expected: number, sent: Sent) {
  const headers = { "content-type": "application/json", ...sent.headers };
  return JSON.parse(await sendRequest(proxy, { ...sent, method, path, expected, headers }));
}

const tokenRequest = (app: TestOrganization): Sent => ({
  body: "grant_type=client_credentials",
  headers: { "content-type": "application/x-www-form-urlencoded", ...basic(app) },
});

const PROXIES = [
  { name: "nginx", isInstalled: HAS_NGINX, prepare: prepareNginx },
  { name: "Caddy", isInstalled: HAS_CADDY, prepare: prepareCaddy },
];
for (const { name, isInstalled, prepare } of PROXIES) {
  const title = `${name} passes on what the server needs, the largest bodies, and the server's own errors`;
  if (!isInstalled) {
    skip(title, `${name} is not installed`);
    continue;
  }
  test(title, async (t) => {
    const proxy = await prepare();
    t.teardown(proxy.stop);
    const port = await freePort();
    const settings = { BASE_URL: proxy.url, TRUST_PROXY: "1", PORT: String(port), RATE_LIMIT: "on" };
    const { start } = await prepareServers(settings);
    const { createOrganization, createUser } = await start();
    await proxy.start([port, await freePort()]);
    const path = "/.well-known/oauth-authorization-server";
    const metadata = await sendRequest(proxy, { method: "GET", path, expected: 200 });
    t.is(JSON.parse(metadata).issuer, proxy.url);

    const app = await createOrganization("Acme", "premium");
    const { username, password } = await createUser([app.id]);
    const post = (path: string, expected: number, sent: Sent) => sendTo(proxy, "POST", path, expected, sent);
    const login = await post("/auth/login", 200, { body: JSON.stringify({ username, password }) });
    const token = await post("/oauth/token", 200, tokenRequest(app));
    const padded = (value: object, bytes: number) => ({
      body: JSON.stringify(value).padEnd(bytes),
      headers: bearer(token.access_token),
    });
    const link = (bytes: number) => padded({ url: "https://example.com" }, bytes);
    const bulk = (bytes: number) => padded({ links: [{ url: "https://example.com" }] }, bytes);
    const file = (bytes: number) => formOf(bytes, login.access_token);
    const importPath = `/dashboard/organizations/${app.id}/links/import`;

    t.like(await post("/v1/links", 201, link(MB / 16)), { url: "https://example.com" });
    t.is((await post("/v1/links/bulk", 200, bulk(MB))).results[0].status, 201);
    t.like(await post(importPath, 200, await file(5 * MB)), { dry_run: true, refused: 0 });
    const TOO_LARGE = { status: 413, code: "body_too_large" };
    t.like(await post("/v1/links", 413, link(MB / 16 + 1)), TOO_LARGE);
    t.like(await post("/v1/links/bulk", 413, bulk(MB + 1)), TOO_LARGE);
    t.like(await post("/v1/links/bulk", 413, bulk(11 * MB)), TOO_LARGE);
    t.like(await post(importPath, 422, await file(6 * MB)), { code: "invalid_file" });
    t.like(await post(importPath, 413, await file(11 * MB)), TOO_LARGE);

    // Each attempt claims another address, but all come from the same one.
    const guess = async () => {
      for (let index = 0; index < 250; index++) {
        const body = JSON.stringify({ username: `user-${index}`, password: "not this one" });
        await post("/auth/login", 401, { body, headers: { "x-forwarded-for": `198.51.100.${index}` } });
      }
    };
    await t.throwsAsync(guess(), { message: /^429 / });
  });
}

/** Requests a path of a host from a proxy, as its visitors do, who trust a certificate. */
function visit({ url }: TestProxy, host: string, path: string, ca: string) {
  const address = new URL(url);
  address.hostname = "127.0.0.1";
  return sendRaw(address.href, path, { headers: ["host", host], servername: host, ca });
}

const HOST = "go.acme.example";
const NO_CERTIFICATE = { message: /alert internal error/ };
const WITH_DOMAINS = [
  { name: "nginx", isInstalled: HAS_NGINX, prepare: () => prepareNginx("domains.nginx.conf") },
  { name: "Caddy", isInstalled: HAS_CADDY, prepare: () => prepareCaddy("domains.Caddyfile") },
];
for (const { name, isInstalled, prepare } of WITH_DOMAINS) {
  const title = `${name} serves a domain once its DNS record is verified, and has no certificate for other hosts`;
  if (!isInstalled) {
    skip(title, `${name} is not installed`);
    continue;
  }
  test(title, async (t) => {
    const [names, proxy, port] = [await startNameServer(), await prepare(), await freePort()];
    const resolver = new Resolver();
    resolver.setServers([names.address]);
    const service = await startTestService(
      { BASE_URL: proxy.url, TRUST_PROXY: "1", PORT: String(port) },
      {},
      { lingerMs: 0, resolveTxt: (record) => resolver.resolveTxt(record) },
    );
    t.teardown(() => Promise.all([service.close(), proxy.stop(), names.close()]));
    await proxy.start([port, await freePort()]);
    const app = await service.createOrganization();
    const { access_token } = await sendTo(proxy, "POST", "/oauth/token", 200, tokenRequest(app));
    const call = (method: string, path: string, expected: number, json?: object) =>
      sendTo(proxy, method, path, expected, { body: JSON.stringify(json), headers: bearer(access_token) });
    const isRefused = (host: string) =>
      t.throwsAsync(visit(proxy, host, "/spring", proxy.certificate), NO_CERTIFICATE, host);

    const { id, dns } = (await call("POST", "/v1/domains", 201, { host: HOST })) as DomainView;
    t.like(await call("POST", `/v1/domains/${id}/verify`, 409), { code: "domain_unproven" });
    await isRefused(HOST);
    names.setTexts(dns.name, "v=spf1 -all", dns.value);
    t.like(await call("POST", `/v1/domains/${id}/verify`, 200), { verified: true });
    const url = "https://example.com/spring";
    const link = await call("POST", "/v1/links", 201, { url, domain: HOST, slug: "spring" });
    t.is(link.short_url, `https://${HOST}/spring`);

    const trusted = await proxy.certify(HOST);
    const { status, headers } = await visit(proxy, HOST, "/spring?a=1", trusted);
    t.deepEqual([status, headers.location], [302, `${url}?a=1`]);
    t.is((await visit(proxy, HOST, "/dashboard", trusted)).status, 404, "nothing else is there");
    const insecure = await sendRaw(`http://127.0.0.1:${proxy.httpPort}`, "/spring", {
      headers: ["host", HOST],
    });
    t.regex(insecure.headers.location ?? "", new RegExp(`^https://${HOST}(:\\d+)?/spring$`));
    for (const other of ["unknown.acme.example", "acme.example"]) await isRefused(other);
    t.is((await visit(proxy, HOST, "/spring", trusted)).status, 302, "the domain still works");
  });
}
