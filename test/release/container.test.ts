import { cpSync, existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { parseEnv } from "node:util";
import test from "ava";
import { parse } from "yaml";
import { createTestDatabase, serverOf } from "../harness/database/test-database.ts";
import { addressOf, freePort, runCommand, temporaryFolder } from "../harness/program.ts";
import { createBuilder, createContainer, HAS_BUILDAH, sizeOf } from "../harness/release/image.ts";
import { packProduct } from "../harness/release/package.ts";
import { skip } from "../harness/skip.ts";

const MAX_BYTES = 250e6;
const LINKGATE = "/usr/local/bin/linkgate";
const CHOICES = ["--registration", "invite", "--self-service-plans", "off"];
const { TEST_REDIS_URL } = process.env;
const folder = temporaryFolder("container");

/** Builds the image in the folder that `linkgate init compose` has written. */
async function buildImage() {
  const context = path.join(folder, "compose");
  cpSync(await packProduct(folder), path.join(context, "linkgate-test.tgz"));
  const { stderr } = await runCommand(["init", "compose", ...CHOICES], { cwd: context });
  if (stderr) throw new Error(stderr);
  const bases = [...readFileSync(path.join(context, "Containerfile"), "utf8").matchAll(/^FROM (\S+)/gm)];
  const builder = createBuilder(path.join(folder, "buildah"));
  const [build = "", runtime = ""] = bases.map(([, name = ""]) => name);
  await builder.createBases(build, runtime);
  return { context, ...(await builder.build(context)) };
}

const image = HAS_BUILDAH ? await buildImage() : undefined;

if (!image) skip("the image is built and runs", "buildah is not installed, or this user is not root");
else {
  const { context, config, rootfs } = image;
  const environment = [...config.Env, "REGISTRATION=invite", "SELF_SERVICE_PLANS=off"];
  const run = createContainer(rootfs, path.join(folder, "volume"), environment);

  test("the image is smaller than 250 MB, and has no shell and no package manager", (t) => {
    const bytes = sizeOf(rootfs);
    t.log(`${Math.round(bytes / 1e6)} MB`);
    t.true(bytes < MAX_BYTES, `${bytes}`);
    for (const file of ["bin/sh", "usr/bin/env", "usr/local/bin/npm", "app/node_modules/.bin/tsc"])
      t.false(existsSync(path.join(rootfs, file)), file);
  });

  test("the server can write to its volume only", (t) => {
    t.is(config.User, "nonroot");
    t.deepEqual(Object.keys(config.Volumes), ["/data"]);
    for (const file of ["app", "app/node_modules/linkgate/dist", "usr/local/bin/linkgate"])
      t.is(statSync(path.join(rootfs, file)).uid, 0, file);
  });

  test("a container starts, is healthy, gives a token and stops", async (t) => {
    const started = performance.now();
    const port = String(await freePort());
    const server = run(config.Entrypoint, { PORT: port });
    const address = await addressOf(server);
    const check = config.Healthcheck.Test.slice(1).map((word) => word.replaceAll(":3000", `:${port}`));
    t.is((await run(check).ended).code, 0);
    const created = await run([LINKGATE, "org", "create", "Acme", "--plan", "growth", "--json"]).ended;
    const { client_id, client_secret } = JSON.parse(created.stdout).client;
    const body = new URLSearchParams({ grant_type: "client_credentials", client_id, client_secret });
    const answer = await fetch(`${address}/oauth/token`, { method: "POST", body });
    t.is(answer.status, 200);
    t.log(`container to token: ${((performance.now() - started) / 1000).toFixed(1)} s`);
    t.is((await fetch(`${address}/docs`)).status, 200);
    const { code, stderr } = await server.stop();
    t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
    t.is((await run(check).ended).code, 1, "it is not healthy any more");
  });

  const title = "the service of the compose file runs with PostgreSQL and Redis";
  if (!serverOf("postgres") || !TEST_REDIS_URL) skip(title, "PostgreSQL and Redis are not available");
  else
    test(title, async (t) => {
      const database = await createTestDatabase({ empty: true, on: "postgres" });
      const { services } = parse(readFileSync(path.join(context, "compose.yaml"), "utf8"));
      const { environment, read_only, cap_drop } = services.linkgate;
      t.deepEqual([read_only, cap_drop], [true, ["ALL"]]);
      const secrets = parseEnv(readFileSync(path.join(context, ".env"), "utf8"));
      const port = await freePort();
      const settings = Object.entries<string | number>(environment).map(([name, value]) => [
        name,
        String(value)
          .replace(/\$\{(\w+):\?[^}]*\}/, (_, variable) => secrets[variable] as string)
          .replace(/^postgres:.*@postgres:5432\/linkgate$/, database.url)
          .replace("redis://redis:6379", TEST_REDIS_URL),
      ]);
      const own = { PORT: String(port), SHUTDOWN_DELAY: "0" };
      const server = run(config.Entrypoint, { ...Object.fromEntries(settings), ...own });
      t.is(await addressOf(server), "https://links.example.com");
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
      t.is(answer.status, 200, await answer.text());
      const { code, stderr } = await server.stop();
      t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
    });
}
