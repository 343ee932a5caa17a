import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import test from "ava";
import { shareApi } from "../../harness/clients/authorization.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { advanceClock } from "../../harness/clock.ts";
import { freePort } from "../../harness/program.ts";
import { selfSigned } from "../../harness/publisher.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const SECRET = "a-secret-of-the-resource-server-0123456789";
const { service, app } = await shareApi({ RESOURCE_SERVER_SECRET: SECRET });

async function startResourceServer(introspectionUrl: string) {
  const port = await freePort();
  const resourceServer = await startTestService({
    PORT: String(port),
    BASE_URL: service.url,
    INTROSPECTION_URL: introspectionUrl,
    INTROSPECTION_CLIENT_SECRET: SECRET,
  });
  const headers = ["host", new URL(service.url).host, "authorization"];
  return {
    close: () => resourceServer.close(),
    statusFor: async (token: string) => {
      const raw = { headers: [...headers, bearer(token).authorization] };
      return (await sendRaw(`http://127.0.0.1:${port}`, "/v1/organization", raw)).status;
    },
  };
}

test.serial("a resource server doesn't accept a token that it introspected before it expired", async (t) => {
  const { statusFor, close } = await startResourceServer(`${service.url}/oauth/introspect`);
  t.teardown(close);
  const token = await service.token(app);
  t.is(await statusFor(token), 404, "the token is accepted, and this database lacks the organization");
  advanceClock(3601_000);
  t.is(await statusFor(token), 401);
});

test("a resource server sends no token to a server whose certificate it can't verify", async (t) => {
  const { private: key, cert } = await selfSigned("localhost");
  let requests = 0;
  const impostor = createServer({ key, cert }, (_req, res) => {
    requests += 1;
    res.end(JSON.stringify({ active: true }));
  }).listen(0, "localhost");
  await once(impostor, "listening");
  const { port } = impostor.address() as AddressInfo;
  const { statusFor, close } = await startResourceServer(`https://localhost:${port}/oauth/introspect`);
  t.teardown(async () => {
    impostor.close();
    await close();
  });
  t.is(await statusFor(await service.token(app)), 503);
  t.is(requests, 0);
});
