import { setTimeout as sleep } from "node:timers/promises";
import pLimit from "p-limit";
import { apiAt, type LinkBody, type PageBody, type Reply } from "../harness/clients/api.ts";
import { basic } from "../harness/clients/oauth.ts";
import { bearer, postForm, type TestOrganization } from "../harness/service.ts";
import type { Receiver } from "../harness/webhooks.ts";
import { poll } from "./programs.ts";

/** What the service under load is, and which endpoint gets the events of new links. */
export type Subject = { url: string; app: TestOrganization; token: string; receiver: Receiver; path: string };

/** What was acknowledged, and must be so afterwards. */
export type Facts = {
  tokens: Set<string>;
  revoked: Set<string>;
  /** By the URL that they lead to, which no two requests share. */
  links: Map<string, LinkBody>;
};

type Kind = "token" | "link" | "revocation" | "redirect";

const PAUSE_MS = 40;
// Clients should wait for Retry-After. Those without an Idempotency-Key ask more often, to measure how long the outage is.
const RETRY_MS = 200;
const TIMEOUT_MS = 60_000;

class Tally {
  readonly statuses: Record<string, number> = {};
  readonly unexpected: string[] = [];
  successes = 0;
  #last = performance.now();
  #longestMs = 0;

  count(status: number, isExpected: boolean, text: string): void {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    if (!isExpected) this.unexpected.push(`${status} ${text.slice(0, 200)}`);
    if (status < 200 || status >= 400) return;
    this.successes += 1;
    this.end();
  }

  get longestS(): number {
    return this.#longestMs / 1000;
  }

  end(): void {
    this.#longestMs = Math.max(this.#longestMs, performance.now() - this.#last);
    this.#last = performance.now();
  }
}

export type Load = ReturnType<typeof startLoad>;

/** Sends requests of all kinds until it is stopped, and repeats those that get 503. */
export function startLoad(subject: Subject, followed: LinkBody[], facts: Facts, lanes: Record<Kind, number>) {
  const { url, app, token } = subject;
  const tallies = { token: new Tally(), link: new Tally(), revocation: new Tally(), redirect: new Tally() };
  let isStopped = false;

  /** Resolves to the first response that isn't 503, or to nothing once the load is stopped. */
  async function send(
    kind: Kind,
    path: string,
    { headers = {}, ...options }: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {},
  ) {
    while (!isStopped) {
      const sent = {
        ...options,
        headers,
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      } as const;
      const response = await fetch(url + path, sent).catch((error: Error) => error);
      if (response instanceof Error) {
        tallies[kind].count(0, false, String(response.cause ?? response));
        return undefined;
      }
      const { status } = response;
      const text = await response.text();
      const retryAfter = response.headers.get("retry-after") ?? "";
      const isUnavailable = status === 503 && /^\d+$/.test(retryAfter);
      tallies[kind].count(status, status < 400 || isUnavailable, text);
      if (status !== 503) return { status, text, headers: response.headers };
      // Until then, another process may take the first request for one in progress.
      await sleep("idempotency-key" in headers ? Number(retryAfter) * 1000 : RETRY_MS);
    }
    return undefined;
  }

  const form = (fields: Record<string, string>) => ({
    method: "POST",
    headers: basic(app),
    body: new URLSearchParams(fields),
  });

  async function issueToken(): Promise<string | undefined> {
    const response = await send("token", "/oauth/token", form({ grant_type: "client_credentials" }));
    if (response?.status !== 200) return undefined;
    const { access_token } = JSON.parse(response.text);
    facts.tokens.add(access_token);
    return access_token;
  }

  const work: Record<Kind, () => Promise<unknown>> = {
    token: issueToken,
    async revocation() {
      const issued = await issueToken();
      if (issued === undefined) return;
      facts.tokens.delete(issued); // a request without a response may have revoked it
      const response = await send("revocation", "/oauth/revoke", form({ token: issued }));
      if (response?.status === 200) facts.revoked.add(issued);
    },
    async link() {
      const destination = `https://example.com/${crypto.randomUUID()}`;
      const key = { "idempotency-key": crypto.randomUUID(), "content-type": "application/json" };
      const body = JSON.stringify({ url: destination });
      const response = await send("link", "/v1/links", {
        method: "POST",
        headers: { ...bearer(token), ...key },
        body,
      });
      if (response?.status === 201) facts.links.set(destination, JSON.parse(response.text));
    },
    async redirect() {
      const link = followed[Math.floor(Math.random() * followed.length)] as LinkBody;
      const response = await send("redirect", `/${link.slug}`);
      const location = response?.headers.get("location");
      if (response && location !== link.url)
        tallies.redirect.unexpected.push(`${response.status} to ${location}`);
    },
  };

  async function runLane(kind: Kind): Promise<void> {
    while (!isStopped) {
      await work[kind]();
      await sleep(PAUSE_MS);
    }
  }

  const kinds = Object.keys(lanes) as Kind[];
  const running = Promise.all(
    kinds.flatMap((kind) => Array.from({ length: lanes[kind] }, () => runLane(kind))),
  );
  return {
    tallies,
    async untilSuccessful(count: number): Promise<void> {
      const goals = kinds.map((kind) => [tallies[kind], tallies[kind].successes + count] as const);
      await poll("successful requests", async () =>
        goals.every(([{ successes }, goal]) => successes >= goal) ? true : undefined,
      );
    },
    async stop(): Promise<void> {
      isStopped = true;
      for (const tally of Object.values(tallies)) tally.end();
      await running;
    },
  };
}

const CONCURRENCY = 8;

/** Compares what was acknowledged with what is there, one by one. Returns what differs. */
export async function findDifferences({ url, app, token, receiver, path }: Subject, facts: Facts) {
  const limit = pLimit(CONCURRENCY);
  const expectActive = (tokens: Set<string>, expected: boolean) =>
    limit.map(tokens, async (one) => {
      const response = await postForm(`${url}/oauth/introspect`, { token: one }, basic(app));
      const { active } = (await response.json()) as { active?: boolean };
      return active === expected
        ? []
        : [`${response.status}: a ${expected ? "token" : "revoked token"} is active: ${active}`];
    });
  const tokens = [
    ...(await expectActive(facts.tokens, true)),
    ...(await expectActive(facts.revoked, false)),
  ].flat();

  const stored = Map.groupBy(await listLinks(url, token), (link) => link.url);
  const links = [...facts.links].flatMap(([destination, { id }]) =>
    stored.get(destination)?.some((link) => link.id === id) ? [] : [`the link ${id} is lost`],
  );
  const repeated = [...stored.values()]
    .filter(({ length }) => length > 1)
    .map(([link]) => `${link?.url} was created twice`);

  const all = [...stored.values()].flat();
  await poll("deliveries", async () => {
    const delivered = new Set(receiver.received(path).map(({ body }) => linkOf(body)));
    return all.every(({ id }) => delivered.has(id)) || undefined;
  }).catch(() => {});
  const delivered = Map.groupBy(receiver.received(path), ({ body }) => linkOf(body));
  const events = all.flatMap(({ id }) => {
    const ids = new Set(delivered.get(id)?.map(({ headers }) => headers["webhook-id"]));
    return ids.size === 1 ? [] : [`the event of ${id} was delivered with ${ids.size} IDs`];
  });
  const unknown = [...delivered.keys()]
    .filter((id) => !all.some((link) => link.id === id))
    .map((id) => `the link ${id} of an event doesn't exist`);
  return [...tokens, ...links, ...repeated, ...events, ...unknown];
}

const linkOf = ({ data }: { data: Record<string, unknown> }) =>
  (data.link as LinkBody | undefined)?.id ?? (data.id as string);

async function listLinks(url: string, token: string): Promise<LinkBody[]> {
  const api = apiAt(url, token);
  const links: LinkBody[] = [];
  let cursor: string | null | undefined = "";
  while (cursor !== null && cursor !== undefined) {
    const { body }: Reply<PageBody> = await api.get<PageBody>(
      `/v1/links?limit=100${cursor && `&cursor=${cursor}`}`,
    );
    links.push(...body.data);
    cursor = body.next_cursor;
  }
  return links;
}
