import { readFileSync, writeFileSync } from "node:fs";
import test from "ava";
import { CLI_CLIENT, KNOWN_DOCUMENTS } from "../../server/clients/known-clients.ts";
import { authorizeUrl } from "../harness/clients/authorization-request.ts";
import { createSigningKey } from "../harness/clients/document-client.ts";
import { connectHost, serverIdOf } from "../harness/hosts/connect.ts";
import { HOSTS, type Host, SELF_HOSTED } from "../harness/hosts/host.ts";
import { listOf, renderList, withList } from "../harness/hosts/table.ts";
import { startPublisher } from "../harness/publisher.ts";
import { OPERATOR, startTestService, type TestService } from "../harness/service.ts";

const DOCUMENT = new URL("../../docs/mcp.md", import.meta.url);

// It has the keys of ChatGPT, the only thing that the server fetches; the setting lets it be on this computer.
const publisher = await startPublisher(["chatgpt.com"]);
const key = await createSigningKey();
publisher.publish("https://chatgpt.com/oauth/jwks.json", { body: { keys: [key.jwk] } });
const byDefault = await startTestService(publisher.settings, publisher.connections);
const registering = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const user = await createMember(byDefault);
const registeringUser = await createMember(registering);

async function createMember(service: TestService) {
  const { id } = await service.createOrganization();
  return service.createUser([id]);
}

// Their websites can be anyone's, so an organization has to accept them.
const accepting = await registering.createOrganization();
await registering.storage.organizationSettings.change(accepting.id, { allowedClients: "any" }, OPERATOR);
const acceptingUser = await registering.createUser([accepting.id]);

const connected = new Map<Host, string[]>();
for (const host of HOSTS)
  for (const redirectUri of host.redirect_uris)
    test.serial(`${host.name} connects with ${redirectUri}, refreshes and calls a tool`, async (t) => {
      const connection =
        host.identifies_by === "document"
          ? { service: byDefault, user, host, key }
          : { service: registering, user: registeringUser, host, key };
      await connectHost(t, connection, redirectUri);
      connected.set(host, [...(connected.get(host) ?? []), redirectUri]);
    });

for (const host of SELF_HOSTED)
  test.serial(`${host.name} registers as it does, connects, refreshes and calls a tool`, (t) =>
    connectHost(t, { service: registering, user: acceptingUser, host, key }, String(host.redirect_uris[0])),
  );

test.serial("ChatGPT may authenticate with its keys if it has a document for each server", async (t) => {
  const host = HOSTS.find(({ name }) => name === "ChatGPT, with a document for each server");
  if (host?.identifies_by !== "document") return t.fail();
  const signing: Host = {
    ...host,
    document: { ...host.document, token_endpoint_auth_method: "private_key_jwt" },
  };
  await connectHost(t, { service: byDefault, user, host: signing, key }, String(host.redirect_uris[0]));
});

const PER_SERVER: Record<string, [document: (id: string) => string, redirect: (id: string) => string]> = {
  ChatGPT: [
    (id) => `https://chatgpt.com/oauth/${id}/client.json`,
    (id) => `https://chatgpt.com/connector/oauth/${id}`,
  ],
  Codex: [
    (id) => `https://chatgpt.com/oauth/codex/${id}/client.json`,
    (id) => `http://127.0.0.1:51000/callback/${id}`,
  ],
};
for (const [name, [documentOf, redirectOf]] of Object.entries(PER_SERVER))
  test(`${name} with a document for each server is refused if one character of either ID differs`, async (t) => {
    const id = serverIdOf(byDefault.urls.mcp);
    const startWith = async (clientId: string, redirect_uri: string) => {
      const url = authorizeUrl(byDefault, { clientId }, { redirect_uri });
      return (await fetch(url, { redirect: "manual" })).status;
    };
    t.is(await startWith(documentOf(id), redirectOf(id)), 303);
    for (const [index, character] of [...id].entries()) {
      const other = `${id.slice(0, index)}${character === "A" ? "B" : "A"}${id.slice(index + 1)}`;
      t.is(await startWith(documentOf(other), redirectOf(id)), 400, other);
      t.is(await startWith(documentOf(id), redirectOf(other)), 400, other);
    }
    for (const wrong of [id.slice(1), `${id}A`, `${id.slice(1)}.`, ""])
      t.not(await startWith(documentOf(wrong), redirectOf(wrong)), 303, wrong);
  });

test.serial("the server has fetched nothing but keys", (t) => {
  t.deepEqual([...new Set(publisher.requests)], ["https://chatgpt.com/oauth/jwks.json"]);
});

test.serial("the copies in the server agree with the documents", (t) => {
  const published = HOSTS.flatMap((host) =>
    host.identifies_by === "document" && !host.document.client_id.includes("<id>") ? [host.document] : [],
  );
  t.deepEqual(
    published.map(({ client_id }) => client_id).toSorted(),
    [...KNOWN_DOCUMENTS.keys()].filter((id) => id !== CLI_CLIENT).toSorted(),
  );
  for (const { client_id, redirect_uris, token_endpoint_auth_method, jwks_uri } of published) {
    const copy = KNOWN_DOCUMENTS.get(client_id);
    t.deepEqual(
      [copy?.redirect_uris, copy?.token_endpoint_auth_method, copy?.jwks_uri],
      [redirect_uris, token_endpoint_auth_method, jwks_uri],
    );
  }
});

test.serial("the documentation lists the hosts that have connected", (t) => {
  const document = readFileSync(DOCUMENT, "utf8");
  const list = renderList(connected);
  if (process.env.WRITE_HOSTS) writeFileSync(DOCUMENT, withList(document, list));
  else t.is(listOf(document), listOf(withList(document, list)), "run npm run docs:hosts");
  t.truthy(listOf(document));
  t.is(connected.size, HOSTS.length);
});
