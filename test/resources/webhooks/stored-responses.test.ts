import type { ServerResponse } from "node:http";
import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  type DeliveryDetailsBody,
  until,
  waitForDelivery,
} from "../../harness/webhooks.ts";

export const databases = "all";

const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString("base64url");
const database = await createTestDatabase();
const receiver = await startReceiver();
const service = await startTestService({
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  DATABASE_URL: database.url,
  ENCRYPTION_KEY,
});
const knex = knexFactory(knexConfig(database.url));
test.after.always(async () => {
  await Promise.all([service.close(), receiver.close(), knex.destroy()]);
  await database.drop();
});

/** Sends a test event to an endpoint that responds so, and returns the delivery with what was stored. */
async function exchangeWith(path: string, respond: (response: ServerResponse) => void) {
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  const webhook = await createWebhook(api, receiver.url(path), ["webhook.test"]);
  receiver.respond(path, respond);
  const address = `/v1/webhooks/${webhook.id}`;
  const send = async () => {
    const { body } = await api.send<DeliveryBody>("POST", `${address}/test`);
    return body.id;
  };
  const id = await send();
  await waitForDelivery(api, webhook, (one) => one.id === id && one.attempts.length > 0);
  const look = async () => (await api.get<DeliveryDetailsBody>(`${address}/deliveries/${id}`)).body;
  return { api, webhook, address, id, look, delivery: await look() };
}

test("a delivery has the headers that were sent, and the response that came back", async (t) => {
  const { api, address, id, delivery } = await exchangeWith("/failing", (response) => {
    response.writeHead(500, { "content-type": "application/json", "x-request-id": "req_1" });
    response.end('{"error": "out of stock"}');
  });
  t.like(delivery, {
    id,
    status: "pending",
    response: { status: 500, body: '{"error": "out of stock"}', truncated: false },
  });
  t.like(delivery.response?.headers ?? {}, { "content-type": "application/json", "x-request-id": "req_1" });
  const [received] = await receiver.waitFor("/failing", 1);
  const { connection: _, host: __, ...headers } = received?.headers ?? {};
  t.deepEqual(delivery.request_headers, headers);
  t.is(JSON.stringify(delivery.request), received?.text ?? "");
  const list = await api.get(`${address}/deliveries`);
  t.false(/out of stock|req_1/.test(list.text), "a list would be long");
});

test("a delivery that was not sent yet has neither", async (t) => {
  const held = Promise.withResolvers<ServerResponse>();
  const path = "/held";
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  const { id } = await createWebhook(api, receiver.url(path), ["webhook.test"]);
  receiver.respond(path, held.resolve);
  const { body: sent } = await api.send<DeliveryBody>("POST", `/v1/webhooks/${id}/test`);
  const response = await held.promise;
  const { body } = await api.get<DeliveryDetailsBody>(`/v1/webhooks/${id}/deliveries/${sent.id}`);
  t.like(body, { request_headers: null, response: null, attempts: [] });
  response.end();
});

const BODIES: [name: string, body: string | Buffer, stored: string][] = [
  ["NUL", "a\0b", "a\ufffdb"],
  ["control characters", "\x1b[31mred\x07\x7f\x85", "\ufffd[31mred\ufffd\ufffd\ufffd"],
  ["line breaks and tabs", "one\r\n\ttwo", "one\r\n\ttwo"],
  ["invalid UTF-8", Buffer.from([0x61, 0xff, 0xfe, 0x62]), "a\ufffd\ufffdb"],
  ["half of a surrogate pair", Buffer.from([0xed, 0xa0, 0xbd]), "\ufffd\ufffd\ufffd"],
  ["all of Unicode", "Grüße, 世界 👋🏽", "Grüße, 世界 👋🏽"],
  ["SQL and JSON", `'; drop table deliveries; -- "\\u0000"`, `'; drop table deliveries; -- "\\u0000"`],
];
for (const [name, body, stored] of BODIES) {
  test(`a response body with ${name} is stored as text`, async (t) => {
    const { delivery } = await exchangeWith(`/body-${name.replaceAll(/\W/g, "-")}`, (response) =>
      response.writeHead(400).end(Buffer.from(body as string)),
    );
    t.is(delivery.response?.body, stored);
    t.false(delivery.response?.truncated);
  });
}

test("of a long body, the first 4,096 bytes are stored, without half a character at the end", async (t) => {
  const { delivery } = await exchangeWith("/long", (response) =>
    response.writeHead(500).end(`x${"é".repeat(100_000)}`),
  );
  t.is(delivery.response?.body, `x${"é".repeat(2047)}`);
  t.true(delivery.response?.truncated);
});

test("a body of 4,096 bytes is complete, and one byte more isn't", async (t) => {
  for (const [length, truncated] of [
    [4096, false],
    [4097, true],
  ] as const) {
    const { delivery } = await exchangeWith(`/length-${length}`, (response) =>
      response.writeHead(500).end("x".repeat(length)),
    );
    t.like(delivery.response, { body: "x".repeat(4096), truncated });
  }
});

test("a binary body takes at most 4,096 bytes in the database's encoding, too", async (t) => {
  const { delivery } = await exchangeWith("/binary", (response) =>
    response.writeHead(500).end(Buffer.alloc(4096, 0xff)),
  );
  t.is(delivery.response?.body, "\ufffd".repeat(1365));
  t.true(delivery.response?.truncated);
});

test("of a response that doesn't end, what came within a second is stored", async (t) => {
  const { delivery } = await exchangeWith("/slow", (response) =>
    response.writeHead(503).write("please wait"),
  );
  t.like(delivery.response, { status: 503, body: "please wait", truncated: true });
  t.true((delivery.attempts[0]?.ms ?? 0) < 5000);
});

test("values of cookies and control characters in headers are not stored", async (t) => {
  const { delivery } = await exchangeWith("/headers", (response) => {
    response.socket?.end(
      Buffer.from(
        "HTTP/1.1 500 Oh\r\nSet-Cookie: session=secret-one\r\nset-cookie: b=secret-two\r\nX-Latin: caf\xe9\x85\r\nContent-Length: 0\r\n\r\n",
        "latin1",
      ),
    );
  });
  const headers = delivery.response?.headers ?? {};
  t.is(headers["set-cookie"], "(not stored)");
  t.is(headers["x-latin"], "café\ufffd");
  t.false(JSON.stringify(delivery).includes("secret-"));
});

test("headers that are too long are left out, and the others stay", async (t) => {
  const { delivery } = await exchangeWith("/many-headers", (response) => {
    response.setHeader("x-long", "x".repeat(5000));
    for (let index = 0; index < 60; index++) response.setHeader(`x-${index}`, "y".repeat(95));
    response.setHeader("x-id", "req_1");
    response.writeHead(500).end();
  });
  const headers = delivery.response?.headers ?? {};
  t.false("x-long" in headers);
  t.is(headers["x-id"], "req_1");
  t.true(Object.entries(headers).flat().join("").length <= 4096);
});

test("without a response, the delivery has the headers of the request and the reason", async (t) => {
  const { delivery } = await exchangeWith("/closed", (response) => response.socket?.destroy());
  t.is(delivery.response, null);
  t.is(delivery.request_headers?.["webhook-id"], delivery.id);
  t.like(delivery.attempts[0], { error: "The connection was closed without a response." });
});

test("the response stays when a later attempt isn't sent", async (t) => {
  const { api, address, look } = await exchangeWith("/unsent", (response) =>
    response.writeHead(500).end("the last response"),
  );
  await api.send("PATCH", address, { json: { enabled: false } });
  const failed = await until(async () => {
    const delivery = await look();
    return delivery.status === "failed" ? delivery : undefined;
  });
  t.regex(failed.attempts.at(-1)?.error ?? "", /^Not sent: the webhook is disabled/);
  t.is(failed.response?.body, "the last response");
});

test("the last response replaces the one before", async (t) => {
  const { api, address, id, look } = await exchangeWith("/fixed", (response) =>
    response.writeHead(500).end("broken"),
  );
  receiver.respond("/fixed", (response) => response.writeHead(200).end("ok"));
  await api.send("POST", `${address}/deliveries/${id}/resend`);
  const delivered = await until(async () => {
    const delivery = await look();
    return delivery.status === "succeeded" ? delivery : undefined;
  });
  t.like(delivered.response, { status: 200, body: "ok" });
  t.like(delivered.attempts, [{ status: 500 }, { status: 200 }]);
});

test("requests and responses are encrypted in the database, and unavailable without the key", async (t) => {
  const { id, look } = await exchangeWith("/T000/a-secret-path", (response) =>
    response.writeHead(404).end("Cannot POST /T000/a-secret-path"),
  );
  const [row] = await knex("deliveries").where({ event_id: id });
  t.regex(row?.exchange ?? "", /^v1\.[\w-]+$/);
  t.false(JSON.stringify(row).includes("a-secret-path"));
  t.regex((await look()).response?.body ?? "", /a-secret-path/);
  const other = await exchangeWith("/other", (response) => response.writeHead(404).end("another"));
  const [copied] = await knex("deliveries").where({ event_id: other.id });
  await knex("deliveries")
    .where({ event_id: id })
    .update({ exchange: copied?.exchange ?? null });
  t.like(await look(), { id, response: null, request_headers: null }, "it belongs to its delivery");
});
