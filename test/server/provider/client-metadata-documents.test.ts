import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import test from "ava";
import { authorizeUrl, createApp, formOf, read } from "../harness/oauth.ts";
import { postForm, startTestService } from "../harness/service.ts";

const service = await startTestService({ CIMD: "on" });
const { app } = await createApp(service);
// Where a document would be found, if the service said a word there.
let heard = 0;
const site = createServer((socket) => {
  socket
    .on("error", () => {})
    .on("data", () => {
      heard += 1;
      socket.destroy();
    });
}).listen(0, "127.0.0.1");
await once(site, "listening");
const { port } = site.address() as AddressInfo;
test.after.always(async () => {
  site.close();
  await service.close();
});

test("the metadata tells that documents are known as clients, and public ones with them", async (t) => {
  const { body } = await read(fetch(`${service.url}/.well-known/oauth-authorization-server`));
  t.true(body.client_id_metadata_document_supported);
  t.true((body.token_endpoint_auth_methods_supported as string[]).includes("none"));
});

test("with CIMD off neither is told, and such a client is unknown", async (t) => {
  const plain = await startTestService();
  t.teardown(() => plain.close());
  const { body } = await read(fetch(`${plain.url}/.well-known/oauth-authorization-server`));
  t.falsy(body.client_id_metadata_document_supported);
  t.false((body.token_endpoint_auth_methods_supported as string[]).includes("none"));
  const url = authorizeUrl(plain, { ...app, clientId: `https://127.0.0.1:${port}/client.json` });
  t.is((await fetch(url, { redirect: "manual" })).status, 400);
  t.is(heard, 0);
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
  test(`a document at ${clientId.replace(String(port), "…")} is not fetched, nobody is sent anywhere`, async (t) => {
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
    t.is(heard, 0);
  });
}

test("the clients of organizations need their secret all the same", async (t) => {
  const fields = { grant_type: "client_credentials", client_id: app.clientId };
  t.is((await read(postForm(`${service.url}/oauth/token`, fields))).status, 401);
  t.regex(await service.token(app), /^lga_/);
});
