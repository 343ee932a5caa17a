import { once } from "node:events";
import {
  createServer,
  get,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

/** An HTTP server that stops without losing requests. */
export type GracefulServer = {
  server: Server;
  /** Makes each response from now on carry `Connection: close` (RFC 9112 §9.6). New connections are still accepted. */
  announceStop(): void;
  /**
   * Announces the stop, and resolves when the last connection is closed, after 10 s at most. New connections are
   * accepted until all that waited before the call are served. If the stop was announced before the call, connections are
   * kept alive again until the port is closed: clients that come back all the same would otherwise be connecting just then.
   */
  shutDown(): Promise<void>;
};

// Proxies and clients keep idle connections for up to a minute. If the server closes one first, it resets the request
// that was just sent.
const KEEP_ALIVE_MS = 75_000;
const TIMEOUTS = { keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: KEEP_ALIVE_MS + 5_000 };

// Requests that are on the network when the shutdown starts still arrive. So does the next request of a busy connection,
// whose response then tells the client to close it.
const LINGER_MS = 200;
// How long to wait for a request that stopped arriving, or for a client that doesn't close its side.
const STALLED_MS = 2000;
// Connections that are still busy after this time are cut.
const LIMIT_MS = 10_000;
const CHECK_MS = 20;
// For how long requests are held back at most, to close the port in a turn of the event loop that is as short as this.
const HOLD_MS = 250;
const SHORT_TURN_MS = 1;
// A client that got its response in one turn connects in the next.
const QUIET_TURNS = 2;

type Connection = {
  socket: Socket;
  /** Responses that aren't sent completely, oldest first; several if the client pipelines. */
  pending: ServerResponse[];
  /** Bytes read when the last response was sent. */
  settledBytes: number;
  /** Bytes read at the last check, and when that number last changed. */
  checkedBytes: number;
  changedAt: number;
};

/**
 * Creates an HTTP server.
 * @param handedOver resolves when this process has received all connections that another process accepted for it so far
 */
export function createGracefulServer(
  listener: RequestListener,
  handedOver: () => Promise<void> = async () => {},
): GracefulServer {
  const connections = new Map<Socket, Connection>();
  let isStopping = false;
  let accepted = 0;
  let held: (() => void)[] | undefined;

  function accept(socket: Socket) {
    accepted++;
    const connection = { socket, pending: [], settledBytes: 0, checkedBytes: -1, changedAt: 0 };
    connections.set(socket, connection);
    socket.once("close", () => connections.delete(socket));
    if (isStopping) closeGently(socket);
  }

  function serve(request: IncomingMessage, response: ServerResponse) {
    const { socket } = request;
    // RFC 9112 §9.6: requests after the last response are not processed.
    if (socket.writableEnded) return;
    const connection = connections.get(socket) as Connection;
    connection.pending.push(response);
    response.on("close", () => {
      connection.pending.splice(connection.pending.indexOf(response), 1);
      connection.settledBytes = socket.bytesRead;
    });
    if (isStopping) announceClose(connection);
    if (held) held.push(() => listener(request, response));
    else listener(request, response);
  }

  const server = createServer(TIMEOUTS, serve).on("connection", accept);

  async function serveWhatIsWaiting() {
    await Promise.all([sleep(LINGER_MS), passBacklog(server).then(handedOver)]);
  }

  /**
   * Closes the port. The kernel resets connections that wait to be accepted at that moment, so requests are held back
   * first: the turns of the event loop become short, and two in a row in which no connection arrived are soon found.
   */
  async function closePort() {
    held = [];
    const end = performance.now() + HOLD_MS;
    for (let quietTurns = 0; quietTurns < QUIET_TURNS; ) {
      const [started, before] = [performance.now(), accepted];
      if (started > end) break;
      await nextTurn();
      const isQuiet = before === accepted && performance.now() - started <= SHORT_TURN_MS;
      quietTurns = isQuiet ? quietTurns + 1 : 0;
    }
    // `http.Server.close` would destroy connections whose last response is still being sent.
    NetServer.prototype.close.call(server);
    announceStop();
    const requests = held;
    held = undefined;
    for (const serveHeld of requests) serveHeld();
  }

  async function closeConnections() {
    while (connections.size > 0) {
      // In this phase of the event loop, everything that arrived has been read.
      await nextTurn();
      connections.forEach(endUnlessBusy);
      await sleep(CHECK_MS);
    }
  }

  function announceStop() {
    if (isStopping) return;
    isStopping = true;
    for (const connection of connections.values()) {
      closeGently(connection.socket);
      announceClose(connection);
    }
  }

  return {
    server,
    announceStop,

    async shutDown() {
      const wasAnnounced = isStopping;
      if (wasAnnounced) isStopping = false;
      else announceStop();
      const cut = setTimeout(() => server.closeAllConnections(), LIMIT_MS);
      await Promise.race([serveWhatIsWaiting(), sleep(LIMIT_MS, undefined, { ref: false })]);
      const closed = once(server, "close");
      await closePort();
      if (wasAnnounced) await Promise.race([closed, sleep(LINGER_MS)]);
      await Promise.all([closeConnections(), closed]);
      clearTimeout(cut);
      server.close(); // clears its timers
    },
  };
}

/** Lets the client finish sending. Node would destroy the connection after the last response, which could be lost. */
function closeGently(socket: Socket) {
  socket.destroySoon = () => void socket.end();
}

/** Makes the last pending response close the connection. */
function announceClose({ pending }: Connection) {
  for (const response of pending) {
    if (!response.headersSent) response.shouldKeepAlive = response !== pending.at(-1);
  }
}

/** Ends a connection unless a request on it is being answered or is still arriving. */
function endUnlessBusy(connection: Connection) {
  const { socket, pending, settledBytes, checkedBytes, changedAt } = connection;
  if (pending.some(({ req }) => req.complete)) return;
  const isIdle = pending.length === 0 && socket.bytesRead === settledBytes;
  if (isIdle && !socket.writableEnded) socket.end();
  if (socket.bytesRead !== checkedBytes) {
    connection.checkedBytes = socket.bytesRead;
    connection.changedAt = performance.now();
  } else if (performance.now() > changedAt + STALLED_MS) socket.destroy();
}

/** Waits until the accepted connections are served: they are served in order, so a new one comes last. */
async function passBacklog(server: Server): Promise<void> {
  const { address, port } = server.address() as AddressInfo;
  const request = get({ host: LOOPBACK[address] ?? address, port, path: "/healthz", agent: false });
  const [response] = await once(request, "response").catch(() => []);
  response?.resume();
}

/** Addresses at which a server that listens on all addresses can be reached. */
const LOOPBACK: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
