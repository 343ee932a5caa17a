import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { Server, type Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

// Longer than the minute for which proxies keep idle connections: a server that closes first resets the next request.
const KEEP_ALIVE_MS = 75_000;
// A slow client can't hold a request for as long as it likes. The largest body takes 60 s at 140 kbit/s.
const RECEIVE_MS = 60_000;
const OPTIONS = {
  keepAliveTimeout: KEEP_ALIVE_MS,
  requestTimeout: RECEIVE_MS,
  connectionsCheckingInterval: 5000,
};

// Requests on the network still arrive. So does the next one of a busy connection, whose response closes it.
const LINGER_MS = 200;
// For the first request of a new connection, one that stopped arriving, or a client that doesn't close its side.
const STALLED_MS = 2000;
const LIMIT_MS = 10_000;

type Connection = {
  /** Oldest first; several if the client pipelines. */
  pending: ServerResponse[];
  /** Bytes read when the last response was sent. A new connection isn't idle: it was opened to send a request. */
  settledBytes?: number;
};

/** `leave`, if another process accepts connections, resolves when this one has received the last. */
export function createGracefulServer(
  given: RequestListener | Promise<RequestListener>,
  { leave, lingerMs = LINGER_MS }: { leave?: (() => Promise<void>) | undefined; lingerMs?: number } = {},
) {
  const connections = new Map<Socket, Connection>();
  let isAnnounced = false;
  let isClosing = false;
  let listener: RequestListener;
  /** Requests are held back until it resolves. */
  let held: Promise<void> | undefined = Promise.resolve(given).then((ready) => {
    listener = ready;
    held = undefined;
  });

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
    if (held) void held.then(() => listener(request, response));
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

  async function closeStalled(socket: Socket) {
    const { bytesRead } = socket;
    // In this phase of the event loop, everything that arrived has been read.
    await nextTurn();
    const isAnswering = connections.get(socket)?.pending.some(({ req }) => req.complete);
    if (socket.bytesRead === bytesRead && !isAnswering) socket.destroy();
  }

  return {
    server,
    /** RFC 9112 §9.6: `Connection: close`. New connections are still accepted. */
    announceStop,

    /**
     * Resolves when the last connection is closed, after 10 s at most. Announced earlier, connections are kept alive
     * again until the port is closed: otherwise, busy clients would be reconnecting at that moment.
     */
    async shutDown(): Promise<void> {
      const wasAnnounced = isAnnounced;
      if (wasAnnounced) isAnnounced = false;
      else announceStop();
      const limit = sleep(LIMIT_MS, undefined, { ref: false });
      void limit.then(() => server.closeAllConnections());
      await sleep(lingerMs);
      // Otherwise, the clients of the responses would come back.
      held = leave ? Promise.race([leave(), limit]) : closePort(server);
      await held;
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

function announceClose({ pending }: Connection, socket: Socket) {
  for (const response of pending) {
    if (!response.headersSent) response.shouldKeepAlive = response !== pending.at(-1);
  }
  // Lets the client finish sending. Node would destroy the connection after the last response, which could be lost.
  socket.destroySoon = () => void socket.end();
}

function endIfIdle({ pending, settledBytes }: Connection, socket: Socket) {
  if (pending.length === 0 && socket.bytesRead === settledBytes) socket.end();
}

// Clients that keep requesting reconnect within a few milliseconds of a response.
const QUIET_MS = 10;
const QUIET_LIMIT_MS = 500;
// A busy loop uses up its time slice, so the process may be preempted just before it closes the port.
const STEP_MS = 1;
const LATE_MS = 3;

/** The kernel resets waiting connections, so this waits, for at most 500 ms, until none has arrived for 10 ms. */
export async function closePort(server: Server): Promise<void> {
  let quietSince = performance.now();
  const end = quietSince + QUIET_LIMIT_MS;
  server.on("connection", () => {
    quietSince = performance.now();
  });
  for (let now = quietSince; now < end && now - quietSince < QUIET_MS; ) {
    const before = now;
    await sleep(STEP_MS);
    await nextTurn();
    now = performance.now();
    if (now - before > LATE_MS) quietSince = now;
  }
  // `http.Server.close` would destroy connections whose last response is still being sent.
  Server.prototype.close.call(server);
}
