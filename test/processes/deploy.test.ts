import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { parse, parseAllDocuments } from "yaml";
import manifest from "../../package.json" with { type: "json" };
import { HAS_NGINX, prepareNginx } from "../harness/nginx.ts";
import { freePort } from "../harness/port.ts";
import { addressOf, ROOT, startServer, stopPrograms } from "../harness/program.ts";
import { skip } from "../harness/skip.ts";
import { sendRequest } from "../harness/steady-load.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-deploy-"));
test.after.always(() => {
  stopPrograms();
  rmSync(folder, { recursive: true, force: true });
});

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
  const used = [
    ...Object.keys(compose.services.linkgate.environment),
    ...container.env.map(({ name }: { name: string }) => name),
    ...[...read("linkgate.service").matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = ""]) =>
      line.split(" ").map((pair) => pair.split("=")[0] as string),
    ),
    ...[...read("Containerfile").matchAll(/^ENV (.*)$/gm)].flatMap(([, line = ""]) =>
      line.split(" ").map((pair) => pair.split("=")[0] as string),
    ),
  ];
  t.true(used.length > 12);
  t.deepEqual(
    used.filter((name) => !settings.has(name)),
    [],
  );
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
  const { runAsNonRoot, runAsUser } = pod.securityContext;
  t.deepEqual([runAsNonRoot, runAsUser], [true, 65532]);
  t.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
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

const proxyTitle = "nginx passes on what the server needs, and the server's own errors";
if (!HAS_NGINX) skip(proxyTitle, "nginx is not installed");
else
  test(proxyTitle, async (t) => {
    const nginx = await prepareNginx();
    t.teardown(nginx.stop);
    const port = await freePort();
    const server = startServer({
      settings: {
        DATABASE_URL: `sqlite:${folder}/proxied/test.sqlite`,
        BASE_URL: nginx.url,
        TRUST_PROXY: "1",
        PORT: String(port),
        LOG_LEVEL: "error",
      },
    });
    await addressOf(server);
    await nginx.start([port, await freePort()]);
    const metadata = await sendRequest(nginx, {
      method: "GET",
      path: "/.well-known/oauth-authorization-server",
      expected: 200,
    });
    t.is(JSON.parse(metadata).issuer, nginx.url);

    const post = (path: string, expected: number, bytes: number, headers = {}) =>
      sendRequest(nginx, {
        ...{ method: "POST", path, expected, body: JSON.stringify({ url: "x".repeat(bytes) }) },
        headers: { "content-type": "application/json", ...headers },
      });
    t.is(JSON.parse(await post("/auth/login", 413, 1_500_000)).code, "body_too_large");
    t.regex(await post("/auth/login", 413, 3_000_000), /<center>nginx/);

    // Each attempt claims another address, but all come from the same one.
    const attempt = (index: number) =>
      sendRequest(nginx, {
        ...{ method: "POST", path: "/auth/login", expected: 401 },
        headers: { "content-type": "application/json", "x-forwarded-for": `198.51.100.${index}` },
        body: JSON.stringify({ username: `user-${index}`, password: "not this one" }),
      });
    await t.throwsAsync(
      async () => {
        for (let index = 0; index < 250; index++) await attempt(index);
      },
      { message: /^429 / },
    );
    await server.stop();
  });
