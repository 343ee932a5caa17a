import cluster, { type Worker } from "node:cluster";
import type { Server as HttpServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { closePort } from "./graceful-server.ts";

type Message = { port?: "join" | "connection" | "received" | "leave" | "left"; id?: number };
type Sockets = Map<number, Socket>;

// A worker without a free file descriptor doesn't receive the connection, and can't confirm it.
const CONFIRM_MS = 10_000;

/**
 * A port that `node:cluster` shares resets the connections that wait while the workers stop, and keeps those open
 * that a worker was sent before it died. The port is closed before the first worker leaves.
 */
export function createSharedPort(isStopping: () => boolean): Server {
  // What they have not confirmed. The one that was sent a connection last is the last.
  const members = new Map<Worker, Sockets>();
  // Connections that arrived while there was no worker.
  const waiting: Socket[] = [];
  let count = 0;
  let closed: Promise<void> | undefined;
  const server = createServer({ pauseOnConnect: true, noDelay: true }, handOver);

  function handOver(socket: Socket) {
    const [next] = [...members].toSorted(([, one], [, other]) => one.size - other.size);
    if (!next) return void waiting.push(socket);
    const [worker, sockets] = next;
    members.delete(worker);
    members.set(worker, sockets);
    const id = ++count;
    sockets.set(id, socket);
    socket.setTimeout(CONFIRM_MS, () => release(sockets, id));
    // If it can't be sent, the worker has died.
    worker.send({ port: "connection", id } satisfies Message, socket, { keepOpen: true }, () => {});
  }

  async function letGo(worker: Worker) {
    if (isStopping()) {
      closed ??= closePort(server);
      await closed;
    }
    members.delete(worker);
    worker.send({ port: "left" } satisfies Message, () => {});
  }

  function join(worker: Worker) {
    const sockets: Sockets = new Map();
    worker.on("message", ({ port, id }: Message) => {
      if (port === "received") release(sockets, id as number);
      if (port === "leave") void letGo(worker);
    });
    worker.once("exit", () => {
      members.delete(worker);
      for (const id of sockets.keys()) release(sockets, id);
    });
    members.set(worker, sockets);
    waiting.splice(0).forEach(handOver);
  }

  cluster.on("message", (worker, { port }: Message) => {
    if (port === "join") join(worker);
  });
  return server;
}

function release(sockets: Sockets, id: number): void {
  sockets.get(id)?.destroy();
  sockets.delete(id);
}

export function joinSharedPort(server: HttpServer): void {
  process.on("message", ({ port, id }: Message, socket?: Socket) => {
    if (port !== "connection") return;
    process.send?.({ port: "received", id } as Message);
    if (!socket) return;
    // As `http.Server` does: a client may close its side and still read the response.
    socket.allowHalfOpen = true;
    server.emit("connection", socket);
  });
  // From then on, `http.Server` enforces the time limits of requests.
  server.emit("listening");
  process.send?.({ port: "join" } satisfies Message);
}

/** Resolves when this worker has received its last connection. */
export function leaveSharedPort(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.on("message", ({ port }: Message) => {
    if (port === "left") resolve();
  });
  process.send?.({ port: "leave" } satisfies Message);
  return promise;
}
