import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { closePort } from "./close-port.ts";

/** An HTTP server that stops without losing requests. */
export type GracefulServer = {
  server: Server;
  /** Makes each response from now on carry `Connection: close` (RFC 9112 §9.6). New connections are still accepted. */
  announceStop(): void;
  /**
   * Announces the stop, closes the port after a moment, and resolves when the last connection is closed, after 10 s at
   * most. If the stop was announced before the call, connections are kept alive again until the port is closed: otherwise
   * clients that keep sending would be reconnecting at that moment.
   */
  shutDown(): Promise<void>;
};

// Proxies and clients keep idle connections for up to a minute. If the server closes one first, it resets the request
// that was just sent.
const KEEP_ALIVE_MS = 75_000;
// A client that sends a byte from time to time would otherwise hold a request for as long as it likes. The largest body
// takes 60 s at 140 kbit/s.
const RECEIVE_MS = 60_000;
const OPTIONS = {
  keepAliveTimeout: KEEP_ALIVE_MS,
  requestTimeout: RECEIVE_MS,
  connectionsCheckingInterval: 5000,
};

// Requests that are on the network when the shutdown starts still arrive. So does the next request of a busy connection,
// whose response then tells the client to close it.
const LINGER_MS = 200;
// How long to wait for the first request of a new connection, for one that stopped arriving, or for a client that doesn't
// close its side.
const STALLED_MS = 2000;
// Connections that are still busy after this time are cut.
const LIMIT_MS = 10_000;

type Connection = {
  /** Responses that aren't sent completely, oldest first; several if the client pipelines. */
  pending: ServerResponse[];
  /** Bytes read when the last response was sent. A new connection is opened to send a request, so it isn't idle. */
  settledBytes?: number;
};

/**
 * Creates an HTTP server.
 * @param leave for a server whose connections another process accepts: resolves when it has received the last one
 * @param lingerMs for how long a stop waits for requests that are on the network
 */
export function createGracefulServer(
  listener: RequestListener,
  { leave, lingerMs = LINGER_MS }: { leave?: (() => Promise<void>) | undefined; lingerMs?: number } = {},
): GracefulServer {
  const connections = new Map<Socket, Connection>();
  let isAnnounced = false;
  let isClosing = false;
  /** Requests are held back until then, because their clients would come back otherwise. */
  let portClosed: Promise<void> | undefined;

  function serve(request: IncomingMessage, response: ServerResponse) {
    const { socket } = request;
    // RFC 9112 §9.6: requests after the last response are not processed.
    if (socket.writableEnded) return;
    const connection = connections.get(socket) as Connection;
    connection.pending.push(response);
    response.on("close", () => {
      connection.pending.splice(connection.pending.indexOf(response), 1);
      connection.settledBytes = socket.bytesRead;
      if (isClosing) endIfIdle(connection, socket);
    });
    if (isAnnounced) announceClose(connection, socket);
    if (portClosed) void portClosed.then(() => listener(request, response));
    else listener(request, response);
  }

  const server = createServer(OPTIONS, serve).on("connection", (socket) => {
    connections.set(socket, { pending: [] });
    socket.once("close", () => connections.delete(socket));
  });

  function announceStop() {
    isAnnounced = true;
    connections.forEach(announceClose);
  }

  /** Closes a connection on which nothing has arrived for a while, unless a request on it is being answered. */
  async function closeStalled(socket: Socket) {
    const { bytesRead } = socket;
    // In this phase of the event loop, everything that arrived has been read.
    await nextTurn();
    const isAnswering = connections.get(socket)?.pending.some(({ req }) => req.complete);
    if (socket.bytesRead === bytesRead && !isAnswering) socket.destroy();
  }

  return {
    server,
    announceStop,

    async shutDown() {
      const wasAnnounced = isAnnounced;
      if (wasAnnounced) isAnnounced = false;
      else announceStop();
      const limit = sleep(LIMIT_MS, undefined, { ref: false });
      void limit.then(() => server.closeAllConnections());
      await sleep(lingerMs);
      portClosed = leave ? Promise.race([leave(), limit]) : closePort(server);
      await portClosed;
      announceStop();
      if (wasAnnounced) await sleep(lingerMs);
      await nextTurn();
      isClosing = true;
      server.setTimeout(STALLED_MS, closeStalled);
      for (const socket of connections.keys()) socket.setTimeout(STALLED_MS);
      connections.forEach(endIfIdle);
      for (const socket of connections.keys()) await once(socket, "close").catch(() => {});
      server.close(); // clears its timers
    },
  };
}

/** Makes the last pending response close the connection. */
function announceClose({ pending }: Connection, socket: Socket) {
  for (const response of pending) {
    if (!response.headersSent) response.shouldKeepAlive = response !== pending.at(-1);
  }
  // Lets the client finish sending. Node would destroy the connection after the last response, which could be lost.
  socket.destroySoon = () => void socket.end();
}

/** Ends a connection on which no request is being answered or still arriving. */
function endIfIdle({ pending, settledBytes }: Connection, socket: Socket) {
  if (pending.length === 0 && socket.bytesRead === settledBytes) socket.end();
}
