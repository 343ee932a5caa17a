import cluster, { type Worker } from "node:cluster";
import type { Server as HttpServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { closePort } from "./graceful-server.ts";

type Message = { port?: "join" | "connection" | "received" | "leave" | "left"; id?: number };

type Member = { worker: Worker; sent: Map<number, Socket>; isLeaving: boolean };

// A worker without a free file descriptor doesn't receive the connection, and can't confirm it.
const CONFIRM_MS = 10_000;

/**
 * A port that `node:cluster` shares resets the connections that wait while the workers stop, and keeps those open
 * that a worker was sent before it died. The port is closed before the first worker leaves.
 */
export function createSharedPort(isStopping: () => boolean): Server {
  // The one that was sent a connection last is the last.
  const members: Member[] = [];
  // Connections that arrived while there was no worker.
  const waiting: Socket[] = [];
  let count = 0;
  let isClosed = false;
  const server = createServer({ pauseOnConnect: true, noDelay: true }, handOver);

  function handOver(socket: Socket) {
    const [next] = members.toSorted((one, other) => one.sent.size - other.sent.size);
    if (!next) return void waiting.push(socket);
    members.push(...members.splice(members.indexOf(next), 1));
    const id = ++count;
    next.sent.set(id, socket);
    socket.setTimeout(CONFIRM_MS, () => release(next, id));
    // If it can't be sent, the worker has died.
    next.worker.send({ port: "connection", id } satisfies Message, socket, { keepOpen: true }, () => {});
  }

  function release({ sent }: Member, id: number) {
    sent.get(id)?.destroy();
    sent.delete(id);
  }

  function remove(member: Member) {
    if (members.includes(member)) members.splice(members.indexOf(member), 1);
  }

  function letGo(member: Member) {
    remove(member);
    member.worker.send({ port: "left" } satisfies Message, () => {});
  }

  /** Closes the port once every worker holds its requests back, since their clients would come back otherwise. */
  async function letAllGo() {
    if (isClosed || !members.every(({ isLeaving }) => isLeaving)) return;
    isClosed = true;
    await closePort(server);
    members.slice().forEach(letGo);
  }

  cluster.on("message", (worker, { port }: Message) => {
    if (port !== "join") return;
    const member: Member = { worker, sent: new Map(), isLeaving: false };
    worker.on("message", ({ port, id }: Message) => {
      if (port === "received") release(member, id as number);
      if (port !== "leave") return;
      member.isLeaving = true;
      if (isStopping()) void letAllGo();
      else letGo(member);
    });
    worker.once("exit", () => {
      remove(member);
      for (const id of member.sent.keys()) release(member, id);
      if (isStopping()) void letAllGo();
    });
    members.push(member);
    waiting.splice(0).forEach(handOver);
  });
  return server;
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

export function leaveSharedPort(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.on("message", ({ port }: Message) => {
    if (port === "left") resolve();
  });
  process.send?.({ port: "leave" } satisfies Message);
  return promise;
}
