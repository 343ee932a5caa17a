import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A cable between a service and its database that can be pulled out. */
export type TcpProxy = {
  /** The address with this proxy in the place of its host and port. */
  through(url: string): string;
  /** Cuts every connection; new ones are taken. */
  drop(): void;
  /** Cuts every connection; new ones are refused, or taken and left without a word. `freeze` does that to open ones, too. */
  cut(how?: "refuse" | "silence" | "freeze"): Promise<void>;
  restore(): Promise<void>;
  close(): Promise<void>;
};

/** Puts a proxy in front of the host and the port of an address. */
export async function startTcpProxy(url: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let silent = false;
  const server = createServer((near) => {
    keep(near);
    if (silent) return;
    const far = connect(Number(port), hostname);
    keep(far);
    near.pipe(far).pipe(near);
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

  function freeze() {
    for (const socket of sockets) socket.unpipe().pause();
  }

  async function refuse() {
    drop();
    if (!server.listening) return;
    server.close();
    await once(server, "close");
  }

  const own = await listen(0);
  return {
    through(address) {
      const changed = new URL(address);
      changed.hostname = "127.0.0.1";
      changed.port = String(own);
      return changed.href;
    },
    drop,
    async cut(how = "refuse") {
      silent = how !== "refuse";
      if (how === "freeze") freeze();
      else if (silent) drop();
      else await refuse();
    },
    async restore() {
      silent = false;
      drop();
      if (!server.listening) await listen(own);
    },
    close: refuse,
  };
}
