import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import test, { type ExecutionContext } from "ava";
import { sendRaw } from "../harness/clients/raw.ts";
import { prepareServers } from "../harness/new-server.ts";
import { addressOf, Program } from "../harness/program.ts";

const DESCRIPTORS = 240;
// Of one address.
const MAX = DESCRIPTORS / 2;

async function start(t: ExecutionContext, changes: Record<string, string> = {}): Promise<number> {
  const { settings, close } = await prepareServers({ HOST: "127.0.0.1", ...changes });
  const script = `ulimit -n ${DESCRIPTORS}; exec "${process.execPath}" --import ./server/runtime.js server/main.ts`;
  const server = new Program("bash", ["-c", script], { settings });
  t.teardown(() => server.stop().then(close));
  return Number(new URL(await addressOf(server)).port);
}

async function open(port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let index = 0; index < count; index++) {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => {});
    await once(socket, "connect");
    sockets.push(socket);
  }
  return sockets;
}

const statusFrom = async (localAddress: string, port: number) =>
  (await sendRaw(`http://127.0.0.1:${port}`, "/healthz", { localAddress })).status;

test("one address can't take the connections of all others", async (t) => {
  const port = await start(t);
  const idle = await open(port, MAX + 80);
  const refused = await Promise.all(idle.slice(MAX).map((socket) => text(socket)));
  for (const response of refused) t.regex(response, /^HTTP\/1\.1 503 .*\r\nRetry-After: \d+\r\n/s);
  t.true(idle.slice(0, MAX).every((socket) => !socket.readableEnded));
  t.is(await statusFrom("127.0.0.2", port), 200);
  t.is(await statusFrom("127.0.0.1", port), 503);

  const [first] = idle as [Socket];
  first.end();
  await once(first, "close");
  t.is(await statusFrom("127.0.0.1", port), 200);
  for (const socket of idle) socket.destroy();
});

test("connections of a proxy are not limited", async (t) => {
  const port = await start(t, { TRUST_PROXY: "1" });
  const idle = await open(port, MAX + 10);
  t.is(await statusFrom("127.0.0.1", port), 200);
  for (const socket of idle) socket.destroy();
});
