export type CallOptions = {
  /** Cancels the call with its retries, as in `AbortSignal.timeout(10_000)`. */
  signal?: AbortSignal;
  /** For POST requests and `updateLinks`; the default is a new key for each call. Its retries send the same key. */
  idempotencyKey?: string;
  /** An ETag: the call fails with `precondition_failed` if the resource has changed since. */
  ifMatch?: string;
  /** Receives the response, whose headers include `ETag` and `RateLimit`. */
  onResponse?: (response: Response) => void;
};

/** The first page of a list, and with `for await` the items of this and all following pages. */
export interface Pages<Page extends { data: unknown[] }>
  extends Promise<Page>,
    AsyncIterable<Page["data"][number]> {}

export type Page = { data: unknown[]; next_cursor: string | null };

/** Requests the first page, and the others when they are iterated. */
export function toPages(read: (cursor?: { cursor: string }) => Promise<Page>) {
  const first = read();
  async function* items() {
    for (let page = await first; ; page = await read({ cursor: page.next_cursor })) {
      yield* page.data;
      if (page.next_cursor === null) return;
    }
  }
  return Object.assign(first, { [Symbol.asyncIterator]: items });
}
