import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import test from "ava";
import { authorizeUrl, createApp, formOf, read } from "../../harness/clients/oauth.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService({ CIMD: "on" });
const { app } = await createApp(service);
// A listener at the URL of the metadata documents, which must never receive a byte.
let received = 0;
const site = createServer((socket) => {
  socket
    .on("error", () => {})
    .on("data", () => {
      received += 1;
      socket.destroy();
    });
}).listen(0, "127.0.0.1");
await once(site, "listening");
const { port } = site.address() as AddressInfo;
test.after.always(async () => {
  site.close();
  await service.close();
});

test("discovery lists metadata documents and public clients as supported", async (t) => {
  const { body } = await read(fetch(`${service.url}/.well-known/oauth-authorization-server`));
  t.true(body.client_id_metadata_document_supported);
  t.true((body.token_endpoint_auth_methods_supported as string[]).includes("none"));
});

test("with CIMD off, discovery omits both, and such a client is unknown", async (t) => {
  const plain = await startTestService();
  t.teardown(() => plain.close());
  const { body } = await read(fetch(`${plain.url}/.well-known/oauth-authorization-server`));
  t.falsy(body.client_id_metadata_document_supported);
  t.false((body.token_endpoint_auth_methods_supported as string[]).includes("none"));
  const url = authorizeUrl(plain, { ...app, clientId: `https://127.0.0.1:${port}/client.json` });
  t.is((await fetch(url, { redirect: "manual" })).status, 400);
  t.is(received, 0);
});

const DOCUMENTS = [
  `http://127.0.0.1:${port}/client.json`,
  `https://127.0.0.1:${port}/client.json`,
  `https://localhost:${port}/client.json`,
  `https://[::1]:${port}/client.json`,
  `https://[::ffff:127.0.0.1]:${port}/client.json`,
  `https://2130706433:${port}/client.json`,
  "https://10.0.0.1/client.json",
  "https://169.254.169.254/latest/meta-data",
  "https://user@127.0.0.1/client.json",
  "https://127.0.0.1/",
  "https://127.0.0.1/client.json#x",
  "https://127.0.0.1/../client.json",
];

for (const clientId of DOCUMENTS) {
  test(`a metadata document at ${clientId.replace(String(port), "…")} is not fetched, and its client is rejected`, async (t) => {
    const url = authorizeUrl(service, { ...app, clientId });
    const answer = await fetch(url, { redirect: "manual" });
    t.true(answer.status >= 400 && answer.status < 500, String(answer.status));
    t.is(answer.headers.get("location"), null);
    const token = await read(
      postForm(
        `${service.url}/oauth/token`,
        formOf({ grant_type: "client_credentials", client_id: clientId }),
      ),
    );
    t.true(token.status === 400 || token.status === 401, token.text);
    t.is(received, 0);
  });
}

test("clients of organizations still need their secret", async (t) => {
  const fields = { grant_type: "client_credentials", client_id: app.clientId };
  t.is((await read(postForm(`${service.url}/oauth/token`, fields))).status, 401);
  t.regex(await service.token(app), /^lga_/);
});
