import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Transform } from "node:stream";
import { closeAfterTests } from "./closing.ts";

/**
 * Starts a proxy in front of the host and port of a URL, such as between a service and its database. It adds `roundTripMs`
 * to each round trip, and a test can cut it.
 */
export async function startTcpProxy(url: string, { roundTripMs = 0 } = {}) {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let silent = false;
  let [accepted, open, mostOpen] = [0, 0, 0];
  const server = createServer((near) => {
    accepted++;
    mostOpen = Math.max(mostOpen, ++open);
    near.once("close", () => open--);
    keep(near);
    if (silent) return;
    const far = connect(Number(port), hostname);
    keep(far);
    pass(near, far, roundTripMs / 2);
    pass(far, near, roundTripMs / 2);
    near.once("close", () => far.destroy());
    far.once("close", () => near.destroy());
  });

  function keep(socket: Socket) {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  }

  async function listen(at: number) {
    server.listen(at, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }

  function drop() {
    for (const socket of sockets) socket.destroy();
  }

  async function refuse() {
    drop();
    if (!server.listening) return;
    server.close();
    await once(server, "close");
  }

  const own = await listen(0);
  return {
    through(address: string) {
      const changed = new URL(address);
      changed.hostname = "127.0.0.1";
      changed.port = String(own);
      return changed.href;
    },
    accepted: () => accepted,
    /** The most connections that were open together. */
    mostOpen: () => mostOpen,
    drop,
    /** Closes every connection, and refuses new ones or never answers them. `freeze` also stops answering open ones. */
    async cut(how: "refuse" | "silence" | "freeze" = "refuse") {
      silent = how !== "refuse";
      if (how === "refuse") await refuse();
      else if (how === "silence") drop();
      else for (const socket of sockets) socket.unpipe().pause();
    },
    /** Passes on new connections. Those that were frozen stay as they are. */
    reopen() {
      silent = false;
    },
    async restore() {
      silent = false;
      drop();
      if (!server.listening) await listen(own);
    },
    close: closeAfterTests(refuse),
  };
}

/** Forwards bytes in order, after `delayMs`. Timers with the same delay fire in the order in which they were set. */
function pass(from: Socket, to: Socket, delayMs: number): void {
  if (delayMs === 0) return void from.pipe(to);
  const delayed = new Transform({
    transform(chunk, _encoding, done) {
      setTimeout(() => this.push(chunk), delayMs);
      done();
    },
    flush: (done) => void setTimeout(done, delayMs),
  });
  from.pipe(delayed).pipe(to);
}
