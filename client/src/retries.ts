const FIRST_PAUSE_MS = 500;
const LONGEST_BACKOFF_MS = 8000;
// Rate limits are per minute. A server that asks for more patience has an outage, and the caller should know.
const LONGEST_PAUSE_MS = 60_000;
const TEMPORARY = new Set([429, 502, 503, 504]);

/**
 * Sends a request until its response is final. Network errors and temporary failures are retried, after as long as the
 * server asks for, or else after pauses that double.
 */
export async function fetchWithRetries(
  signal: AbortSignal | undefined,
  maxRetries: number,
  attempt: () => Promise<Response>,
): Promise<Response> {
  for (let retries = 0; ; retries++) {
    signal?.throwIfAborted();
    const outcome = await attempt().then(received).catch(toNetworkError);
    const pauseMs = Math.max(backoff(retries), outcome instanceof Response ? retryAfterMs(outcome) : 0);
    const isFinal = outcome instanceof Response && !isTemporary(outcome);
    if (isFinal || retries >= maxRetries || pauseMs > LONGEST_PAUSE_MS || signal?.aborted) {
      if (outcome instanceof Response) return outcome;
      throw outcome;
    }
    await pause(pauseMs, signal);
  }
}

/** Reads the body, which can also be cut off. */
async function received(response: Response): Promise<Response> {
  const body = await response.arrayBuffer();
  const { status, statusText, headers } = response;
  return new Response(body.byteLength > 0 ? body : null, { status, statusText, headers });
}

/** `fetch` throws a TypeError if there is no response. */
function toNetworkError(error: unknown): TypeError {
  if (error instanceof TypeError) return error;
  throw error;
}

/** A 409 with `Retry-After` is for a key whose first request is still in progress. */
function isTemporary({ status, headers }: Response): boolean {
  return TEMPORARY.has(status) || (status === 409 && headers.has("Retry-After"));
}

/** RFC 9110 §10.2.3: seconds, or a date. */
function retryAfterMs({ headers }: Response): number {
  const value = headers.get("Retry-After") ?? "0";
  return (/^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()) || 0;
}

/** Half of the pause is random, so clients that failed together don't retry together. */
function backoff(retries: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** retries, LONGEST_BACKOFF_MS) * (0.5 + Math.random() / 2);
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await unlessAborted(promise, signal).finally(() => clearTimeout(timer));
}

/** Rejects with the reason of the signal when that aborts before the promise settles. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);
  return Promise.race([aborted, promise]).finally(() => signal?.removeEventListener("abort", abort));
}
