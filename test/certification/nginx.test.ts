import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import type { Report } from "../../certification/src/report.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { HAS_NGINX, prepareNginx } from "../harness/nginx.ts";
import { freePort } from "../harness/port.ts";
import { addressOf, startCommand, startServer, stopPrograms } from "../harness/program.ts";
import { populate } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { useBrowser } from "./user.ts";

export const stage = "long";

const TITLE = "two servers behind nginx with TLS pass every check";
test.after.always(stopPrograms);

if (!HAS_NGINX) skip(TITLE, "nginx is not installed");
else
  test(TITLE, async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), "linkgate-checks-"));
    const database = await createTestDatabase();
    const key = randomBytes(32);
    const storage = openStorage(database.url, key);
    await storage.migrate();
    const nginx = await prepareNginx();
    t.teardown(async () => {
      await nginx.stop();
      await storage.close();
      await database.drop();
      rmSync(folder, { recursive: true });
    });
    setDefaultCACertificates([...getCACertificates("default"), nginx.certificate]);

    const ports = [await freePort(), await freePort()] as const;
    const servers = ports.map((port) =>
      startServer({
        settings: {
          PORT: String(port),
          BASE_URL: nginx.url,
          DATABASE_URL: database.url,
          ENCRYPTION_KEY: key.toString("base64url"),
          TRUST_PROXY: "1",
          RATE_LIMIT: "off",
        },
      }),
    );
    await Promise.all(servers.map(addressOf));
    await nginx.start(ports);

    const service = populate(nginx.url, storage);
    const [app, other] = [await service.createOrganization(), await service.createOrganization()];
    const user = await service.createUser([app.id], undefined, "owner");
    await storage.clients.setRedirectUris(app.id, ["http://127.0.0.1/callback"], OPERATOR);
    const config = path.join(folder, "conformance.json");
    const credentials = ({ clientId, clientSecret }: typeof app) => ({
      client_id: clientId,
      client_secret: clientSecret,
    });
    writeFileSync(
      config,
      JSON.stringify({
        ...credentials(app),
        other_client: credentials(other),
        scope: "links:read",
        resource: `${nginx.url}/v1/links`,
        resource_indicator: `${nginx.url}/v1`,
        mcp: `${nginx.url}/mcp`,
        redirect_uri: "http://127.0.0.1/callback",
      }),
    );
    writeFileSync(path.join(folder, "ca.pem"), nginx.certificate);
    const words = ["conformance", nginx.url, "--config", config, "--json"];
    const command = startCommand(words, { settings: { NODE_EXTRA_CA_CERTS: path.join(folder, "ca.pem") } });
    const [, address = ""] = await command.says(/^Open (http:\/\/\S+) in a browser/m, "stderr");
    await useBrowser(address, nginx.url, { fields: user, buttons: ["Sign in", "Allow"] });
    const { code, stdout } = await command.ended;
    t.is(code, 0, stdout);
    const { failed, warning, passed } = JSON.parse(stdout) as Report;
    t.deepEqual({ failed, warning }, { failed: 0, warning: 0 }, stdout);
    t.true(passed >= 150);
  });
