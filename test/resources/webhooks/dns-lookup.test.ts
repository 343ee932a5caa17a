import diagnostics from "node:diagnostics_channel";
import type { Socket } from "node:net";
import test from "ava";
import { createLookup } from "../../../resources/webhooks/lookup.ts";
import { type Api, apiAt } from "../../harness/api.ts";
import { startNameServer } from "../../harness/name-server.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, type DeliveryBody, delivery } from "../../harness/webhooks.ts";

const names = await startNameServer();
const receiver = await startReceiver();
const { port } = new URL(receiver.url("/"));
const service = await startTestService(
  { WEBHOOK_ALLOW_HOSTS: `localhost:${port}` },
  { lookup: createLookup([names.address]), patience: { connectMs: 8_000, totalMs: 10_000 } },
);
const newcomer = async () => apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => Promise.all([service.close(), receiver.close(), names.close()]));

/** Every address of which something in this process tried a port that webhooks may have. */
let tried: string[] = [];
diagnostics.subscribe("net.client.socket", (message) => {
  const { socket } = message as { socket: Socket };
  socket.on("connectionAttempt", (ip: string, of: number) => {
    if (of === 443 || of === 8443) tried.push(ip);
  });
});
test.beforeEach(() => {
  tried = [];
});

const NOT_PUBLIC = "The name resolves to an address that is not on the public internet.";
// Not given out by anybody, though not reserved either: the network that once tested IPv6.
const NOBODY = "3ffe::1";

/** What comes of the first attempt to deliver to an address. */
async function attemptAt(url: string, api?: Api) {
  const own = api ?? (await newcomer());
  const webhook = await createWebhook(own, url, ["webhook.test"]);
  await own.send<DeliveryBody>("POST", `/v1/webhooks/${webhook.id}/test`);
  const { attempts, status } = await delivery(own, webhook, (told) => told.attempts.length > 0);
  return { status, attempt: attempts[0] };
}

const PRIVATE: [name: string, ...addresses: string[]][] = [
  ["loopback", "127.0.0.1"],
  ["ten", "10.0.0.1"],
  ["metadata", "169.254.169.254"],
  ["carrier", "100.64.0.1"],
  ["zero", "0.0.0.0"],
  ["broadcast", "255.255.255.255"],
  ["loopback-6", "::1"],
  ["any-6", "::"],
  ["mapped", "::ffff:7f00:1"],
  ["compatible", "::7f00:1"],
  ["nat64", "64:ff9b::7f00:1"],
  ["teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
  ["six-to-four", "2002:7f00:1::"],
  ["unique-local", "fd00::1"],
  ["link-local", "fe80::1"],
  ["site-local", "fec0::1"],
  ["one-of-many", "93.184.216.34", "10.0.0.1"],
  ["one-of-both", "127.0.0.1", NOBODY],
];
for (const [name, ...addresses] of PRIVATE) {
  test.serial(
    `sec 131: a name that resolves to ${addresses.join(" and ")} is not connected to`,
    async (t) => {
      const host = `${name}.example.com`;
      names.resolve(host, addresses);
      const { status, attempt } = await attemptAt(`https://${host}/hook`);
      t.is(status, "pending", "somebody may mend the name");
      t.is(attempt?.error, NOT_PUBLIC);
      t.is(attempt?.status, undefined);
      t.deepEqual(tried, []);
      t.deepEqual(names.asked(host).sort(), ["A", "AAAA"]);
    },
  );
}

test.serial(
  "sec 131: a name is asked for once an attempt, and what was checked is connected to",
  async (t) => {
    const host = "rebinding.example.com";
    names.resolve(host, [NOBODY], ["127.0.0.1", "::1"]);
    const { attempt } = await attemptAt(`https://${host}:8443/hook`);
    t.truthy(attempt?.error);
    t.not(attempt?.error, NOT_PUBLIC);
    t.deepEqual(tried, [NOBODY]);
    t.deepEqual(names.asked(host).sort(), ["A", "AAAA"]);
  },
);

test.serial("sec 131: a name that was public once and is private now is not connected to", async (t) => {
  const host = "moved.example.com";
  names.resolve(host, [NOBODY], ["10.0.0.1"]);
  const api = await newcomer();
  t.not((await attemptAt(`https://${host}/hook`, api)).attempt?.error, NOT_PUBLIC);
  t.is((await attemptAt(`https://${host}/hook`, api)).attempt?.error, NOT_PUBLIC);
  t.deepEqual(tried, [NOBODY]);
});

test.serial(
  "sec 131: a receiver on loopback is told only under the name that the operator gave",
  async (t) => {
    names.resolve("alias.example.com", ["127.0.0.1"]);
    const api = await newcomer();
    const refused = await api.send("POST", "/v1/webhooks", {
      json: { url: `http://127.0.0.1:${port}/alias`, events: ["webhook.test"] },
    });
    t.is(refused.status, 422);
    t.is((await attemptAt("https://alias.example.com/alias", api)).attempt?.error, NOT_PUBLIC);
    const { status, attempt } = await attemptAt(`http://localhost:${port}/vouched`, api);
    t.deepEqual([status, attempt?.status], ["succeeded", 204]);
    t.is(receiver.received("/vouched").length, 1);
    t.is(receiver.received("/alias").length, 0);
  },
);

const UNRESOLVED: [name: string, addresses: string[] | undefined, error: string][] = [
  ["unknown.example.com", undefined, "The name does not exist."],
  ["empty.example.com", [], "The name does not exist."],
];
for (const [name, addresses, error] of UNRESOLVED) {
  test.serial(`${name} fails, and the log says: ${error}`, async (t) => {
    if (addresses) names.resolve(name, addresses);
    const { status, attempt } = await attemptAt(`https://${name}/hook`);
    t.is(status, "pending");
    t.is(attempt?.error, error);
  });
}
