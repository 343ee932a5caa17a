/** A statement or transaction took too long. Its connection was closed, so it is open whether it took effect. */
export class DatabaseTimeout extends Error {
  readonly code = "ERR_DATABASE_TIMEOUT";
  constructor() {
    super("the database did not respond in time");
    this.name = "DatabaseTimeout";
  }
}

/** Too many statements wait for a connection, so this one was not sent. */
export class PoolBusy extends Error {
  readonly code = "ERR_POOL_BUSY";
  constructor() {
    super("too many statements are waiting for a connection to the database");
    this.name = "PoolBusy";
  }
}

/** What is known about a connection. Times are those of `performance.now()`. */
type State = {
  isInUse: boolean;
  /** When its use has to end. */
  until: number;
  idleSince: number;
  /** Whether it has to be replaced before its next use. */
  isOutdated: boolean;
};

// One timer for all connections costs less than one for each statement.
const CHECK_MS = 100;
const MAX_WAITING = 1000;
// While all connections are in use, new statements are refused if another one has waited for this part of the time limit.
const MAX_WAIT = 0.2;

/**
 * Watches the connections of a pool. Closes those that are used for too long, because a server that freezes and a network
 * that loses packets don't say so. Refuses new work while earlier work waits for long, so that work in progress finishes
 * in time.
 */
export class ConnectionLimits<Connection extends object> {
  readonly #states = new Map<Connection, State>();
  // In the order in which they began to wait.
  readonly #waiting = new Set<{ since: number }>();
  readonly #size: number;
  readonly #timeoutMs: number;
  readonly #cut: (connection: Connection, error: Error) => void;
  #timer: NodeJS.Timeout | undefined;
  #exemptions = 0;

  /**
   * @param size the most connections of the pool
   * @param timeoutMs how long a statement or transaction may take, including its wait for a connection
   * @param cut closes a connection without waiting for the server, so that its statement fails with the error
   */
  constructor(size: number, timeoutMs: number, cut: (connection: Connection, error: Error) => void) {
    this.#size = size;
    this.#timeoutMs = timeoutMs;
    this.#cut = cut;
  }

  /** The time limit now; Infinity during an exemption. */
  get timeoutMs(): number {
    return this.#exemptions > 0 ? Number.POSITIVE_INFINITY : this.#timeoutMs;
  }

  /** Acquires a connection and watches it. @throws PoolBusy */
  async acquire(acquireFromPool: () => Promise<Connection>): Promise<Connection> {
    const since = performance.now();
    if (this.#isBusy(since)) throw new PoolBusy();
    const wait = { since };
    this.#waiting.add(wait);
    try {
      const connection = await acquireFromPool();
      this.watch(connection, since + this.timeoutMs);
      return connection;
    } finally {
      this.#waiting.delete(wait);
    }
  }

  /** Closes a connection unless its use ends in time. */
  watch(connection: Connection, until = performance.now() + this.timeoutMs): void {
    this.#timer ??= setInterval(() => this.#cutLate(), CHECK_MS).unref();
    const state = this.#states.get(connection);
    if (!state) {
      this.#states.set(connection, { isInUse: true, until, idleSince: 0, isOutdated: false });
      return;
    }
    state.isInUse = true;
    state.until = until;
  }

  release(connection: Connection): void {
    const state = this.#states.get(connection);
    if (!state) return;
    state.isInUse = false;
    state.idleSince = performance.now();
  }

  forget(connection: Connection): void {
    this.#states.delete(connection);
  }

  isOutdated(connection: Connection): boolean {
    return this.#states.get(connection)?.isOutdated ?? false;
  }

  /** Has a connection replaced before its next use. */
  replace(connection: Connection): void {
    const state = this.#states.get(connection);
    if (state) state.isOutdated = true;
  }

  /** Has all connections replaced before their next use. */
  replaceAll(): void {
    this.#replaceIdleSince(Number.POSITIVE_INFINITY);
  }

  /** Runs work without a time limit, on connections that are used for nothing else. */
  async exempt<T>(work: () => Promise<T>): Promise<T> {
    this.replaceAll();
    this.#exemptions++;
    try {
      return await work();
    } finally {
      this.#exemptions--;
      this.replaceAll();
    }
  }

  /** Closes the connections that are still in use after a time. */
  async end(ms: number, ended: () => Promise<void>): Promise<void> {
    const last = setTimeout(() => this.#cutLate(Number.POSITIVE_INFINITY), ms);
    await ended().finally(() => clearTimeout(last));
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #isBusy(now: number): boolean {
    const [oldest] = this.#waiting;
    if (!oldest || now - oldest.since <= this.#timeoutMs * MAX_WAIT) return this.#waiting.size >= MAX_WAITING;
    // Otherwise, connections are being opened, and the database may respond again.
    return [...this.#states.values()].filter(({ isInUse }) => isInUse).length >= this.#size;
  }

  #cutLate(now = performance.now()) {
    for (const [connection, state] of this.#states) {
      if (!state.isInUse || state.until > now) continue;
      state.isInUse = false;
      this.#replaceIdleSince(state.until - this.#timeoutMs);
      this.#cut(connection, new DatabaseTimeout());
    }
  }

  /** Also replaces every connection idle since then; it may be dead. */
  #replaceIdleSince(time: number) {
    for (const state of this.#states.values()) if (state.idleSince < time) state.isOutdated = true;
  }
}
