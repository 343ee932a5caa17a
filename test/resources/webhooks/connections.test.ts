import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import test from "ava";
import { createSend } from "../../../resources/webhooks/send.ts";

const allowed = new Set(["127.0.0.1"]);
const never = new AbortController().signal;

/** Starts an endpoint that counts connections, and a function that sends a request to it. */
async function startEndpoint(respond: Parameters<typeof createServer>[1]) {
  const server = createServer({}, respond).listen(0, "127.0.0.1");
  let connections = 0;
  server.on("connection", () => connections++);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const send = createSend({ allowed, userAgent: "test" });
  return {
    post: () => send(`http://127.0.0.1:${port}/`, {}, "{}", never),
    connections: () => connections,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

test("requests to an endpoint share connections", async (t) => {
  let [inFlight, most] = [0, 0];
  const { post, connections, close } = await startEndpoint(async (_, response) => {
    most = Math.max(most, ++inFlight);
    await nextTurn();
    inFlight--;
    response.end("ok");
  });
  t.teardown(close);
  for (let round = 0; round < 20; round++) t.like(await post(), { status: 200 });
  t.is(connections(), 1);
  await Promise.all(Array.from({ length: 300 }, post));
  t.true(most > 1 && most <= 100, `${most} at a time, the limit per host`);
});

test("50 concurrent requests to an endpoint use the connections of the last 50", async (t) => {
  const { post, connections, close } = await startEndpoint((_, response) => response.end("ok"));
  t.teardown(close);
  for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 50 }, post));
  t.is(connections(), 50);
});

test("a request is sent again if the endpoint closes the connection while it is reused", async (t) => {
  const used = new WeakSet<object>();
  let requests = 0;
  const { post, connections, close } = await startEndpoint(({ socket }, response) => {
    requests++;
    if (used.has(socket)) return socket.destroy();
    used.add(socket);
    return response.end();
  });
  t.teardown(close);
  for (let round = 0; round < 3; round++) t.like(await post(), { status: 200 });
  t.is(connections(), 3);
  t.is(requests, 5);
});

test("a response that doesn't end is a success, and its connection isn't kept", async (t) => {
  const closed = Promise.withResolvers<void>();
  const { post, close } = await startEndpoint((_, response) => {
    response.on("close", closed.resolve);
    response.writeHead(202).write("...");
  });
  t.teardown(close);
  t.like(await post(), { status: 202, exchange: { response: { body: "...", truncated: true } } });
  await closed.promise;
});

test("requests that are sent again share one time limit", async (t) => {
  const used = new WeakSet<object>();
  let later = 0;
  const server = createServer({}, ({ socket }, response) => {
    if (!used.has(socket)) {
      used.add(socket);
      response.end();
      return;
    }
    later++;
    setTimeout(() => socket.destroy(), 2000);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const send = createSend({ allowed, userAgent: "test", timeouts: { connectMs: 3000, totalMs: 3000 } });
  const post = () => send(`http://127.0.0.1:${port}/`, {}, "{}", never);
  await Promise.all(Array.from({ length: 5 }, post));
  t.like(await post(), { error: "The response timed out." });
  t.true(later <= 2, `${later} requests`);
});
