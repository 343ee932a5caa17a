import { once } from "node:events";
import type { RequestListener, ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import test from "ava";
import { createSend } from "../../../resources/webhooks/send.ts";
import { startApp } from "../../harness/clients/app-server.ts";
import { freePort } from "../../harness/program.ts";
import { startReceiver } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const silent = createTcpServer().listen(0, "127.0.0.1");
await once(silent, "listening");
test.after.always(() => silent.close());

const never = new AbortController().signal;
type Timeouts = { connectMs: number; totalMs: number };
const sender = (timeouts: Timeouts = { connectMs: 8_000, totalMs: 10_000 }) => {
  const send = createSend({ allowed: new Set(["127.0.0.1"]), userAgent: "linkgate/test", timeouts });
  return (url: string) => send(url, { "webhook-id": "evt_1" }, '{"type":"test","data":{}}', never);
};
const send = sender();

let count = 0;

function respondingWith(respond: (response: ServerResponse) => void): string {
  const path = `/endpoint-${++count}`;
  receiver.respond(path, respond);
  return receiver.url(path);
}

test("the request headers and the response are returned for the delivery log", async (t) => {
  const url = respondingWith((response) => {
    response.writeHead(503, { "content-type": "application/json", "retry-after": "60" });
    response.end('{"error": "out of stock"}');
  });
  const { exchange, ...answer } = await send(url);
  t.deepEqual(answer, { status: 503, retryAfter: "60" });
  t.like(exchange?.response, { status: 503, body: '{"error": "out of stock"}', truncated: false });
  t.is(exchange?.response?.headers["content-type"], "application/json");
  const [received] = receiver.received(new URL(url).pathname);
  const { connection: _, host: __, ...headers } = received?.headers ?? {};
  t.deepEqual(exchange?.requestHeaders, headers);
  const expected = { "user-agent": "linkgate/test", "content-type": "application/json" };
  t.like(headers, { ...expected, "webhook-id": "evt_1" });
});

test("redirects are not followed", async (t) => {
  for (const status of [301, 302, 303, 307, 308]) {
    const to = respondingWith((response) => response.end());
    const from = respondingWith((response) => response.writeHead(status, { location: to }).end());
    t.is((await send(from)).status, status);
    t.is(receiver.received(new URL(to).pathname).length, 0);
  }
});

const TIMED_OUT = "The response timed out.";
const CLOSED = "The connection was closed without a response.";
const INVALID = "The response is not valid HTTP.";
const ENDLESS = `HTTP/1.1 200 OK\r\nx: ${"x".repeat(100_000)}`;
const FAILURES: [name: string, respond: (response: ServerResponse) => void, error: string][] = [
  ["hangs", () => {}, TIMED_OUT],
  ["sends only an interim response", (response) => response.writeProcessing(), TIMED_OUT],
  ["closes early", (response) => response.socket?.destroy(), CLOSED],
  ["resets the connection", (response) => (response.socket as Socket).resetAndDestroy(), CLOSED],
  ["closes within the headers", (response) => response.socket?.end("HTTP/1.1 200 OK\r\nX: "), CLOSED],
  ["speaks another protocol", (response) => response.socket?.end("+PONG\r\n"), INVALID],
  ["sends endless headers", (response) => response.socket?.write(ENDLESS), INVALID],
];
test("an endpoint that doesn't respond with HTTP fails with the reason", async (t) => {
  for (const [name, respond, error] of FAILURES) {
    const post = error === TIMED_OUT ? sender({ connectMs: 8_000, totalMs: 200 }) : send;
    const { exchange, ...answer } = await post(respondingWith(respond));
    t.deepEqual(answer, { error }, name);
    t.is(exchange?.response, undefined);
    t.is(exchange?.requestHeaders["webhook-id"], "evt_1");
  }
});

test("the error of an endpoint that can't be reached says why, without details of the network", async (t) => {
  const refused = await send(`http://127.0.0.1:${await freePort()}/`);
  t.is(refused.error, "The connection was refused.");
  const plain = await send(receiver.url("/plain").replace("http:", "https:"));
  t.regex(plain.error ?? "", /^The TLS handshake failed/);
  t.notRegex(plain.error ?? "", /\d+\.\d+\.\d+|ECONN/);
  const impatient = sender({ connectMs: 300, totalMs: 10_000 });
  const neverStarted = await impatient(`https://127.0.0.1:${(silent.address() as AddressInfo).port}/`);
  t.is(neverStarted.error, "The connection timed out.");
});

const BODIES: [name: string, body: string | Buffer, stored: string][] = [
  ["NUL", "a\0b", "a\ufffdb"],
  ["control characters", "\x1b[31mred\x07\x7f\x85", "\ufffd[31mred\ufffd\ufffd\ufffd"],
  ["line breaks and tabs", "one\r\n\ttwo", "one\r\n\ttwo"],
  ["invalid UTF-8", Buffer.from([0x61, 0xff, 0xfe, 0x62]), "a\ufffd\ufffdb"],
  ["all of Unicode", "Grüße, 世界 👋🏽", "Grüße, 世界 👋🏽"],
  ["4,096 bytes", "x".repeat(4096), "x".repeat(4096)],
  ["4,097 bytes", "x".repeat(4097), "x".repeat(4096)],
  ["characters of two bytes", `x${"é".repeat(100_000)}`, `x${"é".repeat(2047)}`],
  ["invalid bytes, each of which takes three", Buffer.alloc(4096, 0xff), "\ufffd".repeat(1365)],
];
test("a response body is kept as text, up to 4,096 bytes and without half a character at the end", async (t) => {
  for (const [name, body, stored] of BODIES) {
    const { exchange } = await send(respondingWith((response) => response.writeHead(500).end(body)));
    t.like(exchange?.response, { body: stored, truncated: body.length > stored.length }, name);
  }
});

test("a response that doesn't end is a success with what came within a second, and is closed", async (t) => {
  const closed = Promise.withResolvers<void>();
  const url = respondingWith((response) => {
    response.on("close", closed.resolve);
    response.writeHead(202).write("...");
  });
  t.like(await send(url), { status: 202, exchange: { response: { body: "...", truncated: true } } });
  await closed.promise;
});

test("only a fraction of a response of megabytes is read", async (t) => {
  const taken = Promise.withResolvers<number>();
  const url = respondingWith((response) => {
    let left = 64;
    const more = () => {
      while (left-- > 0) if (!response.write("x".repeat(1024 * 1024))) return;
      response.end();
    };
    response.on("drain", more);
    response.on("close", () => taken.resolve(64 - left));
    response.writeHead(500);
    more();
  });
  t.is((await send(url)).status, 500);
  t.true((await taken.promise) < 32, "only what the system buffers");
});

test("values of cookies and control characters in headers are not kept", async (t) => {
  const url = respondingWith((response) => {
    const head =
      "HTTP/1.1 500 Oh\r\nSet-Cookie: session=secret-one\r\nset-cookie: b=secret-two\r\nX-Latin: caf\xe9\x85\r\nContent-Length: 0\r\n\r\n";
    response.socket?.end(Buffer.from(head, "latin1"));
  });
  const { exchange } = await send(url);
  t.is(exchange?.response?.headers["set-cookie"], "(not stored)");
  t.is(exchange?.response?.headers["x-latin"], "café\ufffd");
  t.false(JSON.stringify(exchange).includes("secret-"));
});

test("headers that are too long are left out, and the others stay", async (t) => {
  const url = respondingWith((response) => {
    response.setHeader("x-long", "x".repeat(5000));
    for (let index = 0; index < 60; index++) response.setHeader(`x-${index}`, "y".repeat(95));
    response.setHeader("x-id", "req_1");
    response.writeHead(500).end();
  });
  const { headers = {} } = (await send(url)).exchange?.response ?? {};
  t.false("x-long" in headers);
  t.is(headers["x-id"], "req_1");
  t.true(Object.entries(headers).flat().join("").length <= 4096);
});

/** Starts an endpoint. Returns a function that posts to it, and how many connections it had. */
async function startEndpoint(respond: RequestListener, timeouts?: Timeouts) {
  const sockets = new Set<Socket>();
  const app = await startApp((request, response) => {
    sockets.add(request.socket);
    return respond(request, response);
  });
  const post = sender(timeouts);
  return { post: () => post(app.url), connections: () => sockets.size };
}

test("requests to an endpoint share at most 100 connections", async (t) => {
  let [inFlight, most] = [0, 0];
  const { post, connections } = await startEndpoint(async (_, response) => {
    most = Math.max(most, ++inFlight);
    await nextTurn();
    inFlight--;
    response.end("ok");
  });
  for (let round = 0; round < 5; round++) t.like(await post(), { status: 200 });
  t.is(connections(), 1);
  await Promise.all(Array.from({ length: 150 }, post));
  t.true(most > 1 && most <= 100, `${most} at a time`);
});

test("50 concurrent requests to an endpoint use the connections of the last 50", async (t) => {
  const { post, connections } = await startEndpoint((_, response) => response.end("ok"));
  for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 50 }, post));
  t.is(connections(), 50);
});

test("a request is sent again if the endpoint closes the connection while it is reused", async (t) => {
  const used = new WeakSet<object>();
  let requests = 0;
  const { post, connections } = await startEndpoint(({ socket }, response) => {
    requests++;
    if (used.has(socket)) return void socket.destroy();
    used.add(socket);
    response.end();
  });
  for (let round = 0; round < 3; round++) t.like(await post(), { status: 200 });
  t.is(connections(), 3);
  t.is(requests, 5);
});

test("requests that are sent again share one time limit", async (t) => {
  const used = new WeakSet<object>();
  let later = 0;
  const respond: RequestListener = ({ socket }, response) => {
    if (used.has(socket)) {
      later++;
      setTimeout(() => socket.destroy(), 700);
      return;
    }
    used.add(socket);
    response.end();
  };
  const { post } = await startEndpoint(respond, { connectMs: 1000, totalMs: 1000 });
  await Promise.all(Array.from({ length: 5 }, post));
  t.like(await post(), { error: TIMED_OUT });
  t.true(later <= 2, `${later} requests`);
});
