import { once } from "node:events";
import { Agent, get } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import test, { type ExecutionContext } from "ava";
import { createGracefulServer } from "../../server/process/graceful-server.ts";
import { startTestService, type TestService } from "../harness/service.ts";

const start = (settings: Record<string, string> = {}) => startTestService(settings, {}, {});

async function startConnected(t: ExecutionContext): Promise<{ service: TestService; socket: Socket }> {
  const service = await start();
  const socket = await connected(service.url);
  t.teardown(() => void socket.destroy());
  socket.write(head(service, "GET /healthz"));
  const [answer] = await once(socket, "data");
  t.regex(String(answer), /^HTTP\/1\.1 200 /);
  return { service, socket };
}

async function connected(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

function head({ url }: { url: string }, line: string, ...headers: string[]): string {
  return [`${line} HTTP/1.1`, `Host: ${new URL(url).host}`, ...headers, "", ""].join("\r\n");
}

test("an idle connection stays open longer than clients and proxies keep it", async (t) => {
  const service = await start();
  const answer = await fetch(`${service.url}/healthz`);
  t.is(answer.headers.get("keep-alive"), "timeout=75");
});

test("a request that isn't received in a minute is answered with 408 and its connection closed", async (t) => {
  const { server } = createGracefulServer(
    (request, response) => void request.resume().on("end", () => response.end()),
  );
  t.is(server.requestTimeout, 60_000);
  server.requestTimeout = 1;
  server.headersTimeout = 1;
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const slow = ["POST / HTTP/1.1", "Host: localhost", "Content-Length: 9", "", "a"].join("\r\n");
  const sent = [slow, slow.slice(0, 20), ""].map((bytes) => {
    const socket = connect(port, "127.0.0.1");
    socket.write(bytes);
    return text(socket);
  });
  for (const received of await Promise.all(sent)) t.regex(received, /^HTTP\/1\.1 408 /);
  server.close();
});

test("after the shutdown starts, connections are accepted for a moment, and checks get 503", async (t) => {
  const { service } = await startConnected(t);
  const stopped = service.close();
  for (const answer of await Promise.all(
    ["healthz", "readyz"].map((path) => fetch(`${service.url}/${path}`)),
  )) {
    t.is(answer.status, 503);
    t.is(answer.headers.get("connection"), "close");
    t.deepEqual(await answer.json(), { status: "stopping" });
  }
  await stopped;
  await t.throwsAsync(fetch(`${service.url}/healthz`));
});

test("after SHUTDOWN_DELAY, connections are kept alive until the port is closed", async (t) => {
  let stop = await observeStop();
  // The last phases take 0.2 s each. While the machine stood still for as long, no request was sent in one of them.
  for (let again = 0; again < 20 && stop.longestMs > 100; again++) stop = await observeStop();
  t.deepEqual(stop.seen, ["close", "keep-alive", "close"]);
  t.is(stop.code, "ECONNREFUSED");
});

/** Sends requests one after the other while a service stops, and returns how it treated their connections. */
async function observeStop() {
  const service = await start({ SHUTDOWN_DELAY: "1" });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let isStopped = false;
  const stopped = service.close().then(() => {
    isStopped = true;
  });
  const seen: unknown[] = [];
  let longestMs = 0;
  let code: unknown;
  // The last request is sent after the service has stopped.
  for (let isLast = false; code === undefined && !isLast; ) {
    isLast = isStopped;
    const sent = performance.now();
    try {
      const [answer] = await once(get(`${service.url}/healthz`, { agent }), "response");
      await text(answer);
      if (seen.at(-1) !== answer.headers.connection) seen.push(answer.headers.connection);
    } catch (error) {
      ({ code } = error as NodeJS.ErrnoException);
    }
    longestMs = Math.max(longestMs, performance.now() - sent);
  }
  agent.destroy();
  await stopped;
  return { seen, code, longestMs };
}

test("pipelined requests are all answered, and the last response closes the connection", async (t) => {
  const { service, socket } = await startConnected(t);
  socket.write(head(service, "GET /v1/links").repeat(3));
  const stopped = service.close();
  const sent = [...(await text(socket)).matchAll(/^Connection: (.*)\r$/gm)].map(([, value]) => value);
  t.deepEqual(sent, ["keep-alive", "keep-alive", "close"]);
  await stopped;
});

test("an idle connection is closed, not reset", async (t) => {
  const { service, socket } = await startConnected(t);
  const unused = await connected(service.url);
  const ended = Promise.all([text(socket), text(unused)]);
  await service.close();
  t.deepEqual(await ended, ["", ""]);
});

test("a response that is sent before the request arrived completely is not lost", async (t) => {
  const { service, socket } = await startConnected(t);
  const body = "x".repeat(8 * 2 ** 20);
  const received = text(socket);
  const headers = ["Content-Type: application/json", `Content-Length: ${body.length}`];
  socket.write(head(service, "POST /v1/links", ...headers));
  const stopped = service.close();
  socket.end(body);
  t.regex(await received, /^HTTP\/1\.1 401 [\s\S]*\r\nConnection: close\r\n/);
  await stopped;
});

test("a stalled request doesn't delay the shutdown, and one that is still arriving is answered", async (t) => {
  const { service, socket: upload } = await startConnected(t);
  const app = await service.createOrganization();
  const token = await service.token(app);
  const stalledHead = await connected(service.url);
  const stalledBody = await connected(service.url);
  const json = JSON.stringify({ url: "https://example.com/", slug: "slow" });
  const post = head(
    service,
    "POST /v1/links",
    "Content-Type: application/json",
    `Authorization: Bearer ${token}`,
    `Content-Length: ${json.length}`,
  );
  const stalled = Promise.all([once(stalledHead, "close"), once(stalledBody, "close")]);
  stalledHead.write(post.slice(0, 20));
  stalledBody.write(post + json.slice(0, 5));
  upload.write(post);

  const stopped = service.close();
  let rest = json;
  const sendByte = () => {
    upload.write(rest.slice(0, 1));
    rest = rest.slice(1);
  };
  const slowly = setInterval(() => rest.length > 1 && sendByte(), 100);
  await stalled;
  clearInterval(slowly);
  upload.write(rest);
  const received = await text(upload);
  t.regex(received, /^HTTP\/1\.1 201 [\s\S]*\r\nConnection: close\r\n/);
  await stopped;
});
