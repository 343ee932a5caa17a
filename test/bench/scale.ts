import type { NewClient } from "../../adapters/oauth/clients.ts";
import { freePort } from "../harness/port.ts";
import { answered, rates, spread } from "./engine.ts";
import { fillLinks, fillTokens } from "./fill.ts";
import { interleaved, scheduled } from "./measure.ts";
import { seed } from "./ours.ts";
import { compare, type Row } from "./table.ts";
import { fetchToken, links, redirects, tokens } from "./workloads.ts";
import { count, expectStored, section, type Workspace } from "./workspace.ts";

const SECONDS = 4;

/** Latencies of scheduled requests, at about half of the service's maximum rate. */
export const latencyRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const { url, host, port, clients, slug, server } = await workspace.ours("latency");
    const token = await fetchToken(host, clients[0] as NewClient);
    const loads = [
      { name: "T", port, next: tokens(host, clients), expected: 200, rate: 1500 },
      { name: "R", port, next: links(host, token), expected: 201, rate: 2500 },
      { name: "redirect", port, next: redirects(host, [slug]), expected: 302, rate: 4000 },
    ];
    const rows: Row[] = [];
    const answers: number[] = [];
    for (const { rate, ...subject } of loads) {
      await scheduled(subject, rate, 2);
      const { p50, p99, answered } = await scheduled(subject, rate, 8);
      answers.push(answered);
      rows.push({
        name: `${subject.name} at ${rate.toLocaleString("en")} per second, p99 in ms`,
        ours: p99,
        note: `p50 ${p50.toFixed(2)} ms`,
      });
    }
    await server.stop(); // a graceful stop stores the last clicks
    const [grants = 0, made = 0, clicks = 0] = answers;
    expectStored("T on schedule", await count(url, "tokens"), grants);
    expectStored("R on schedule", await count(url, "links"), made);
    expectStored("redirect on schedule", await count(url, "links", "clicks"), clicks);
    return rows;
  });

/** Scheduled T while a million expired rows are purged, compared with T without a purge. */
export const sweepRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const EXPIRED = 1_000_000;
    const RATE = 500;
    const T = ({ host, port, clients }: Awaited<ReturnType<Workspace["ours"]>>) => ({
      name: "T",
      port,
      next: tokens(host, clients),
      expected: 200,
    });
    const idle = await workspace.ours("idle");
    await scheduled(T(idle), RATE, 8); // as long as the purge takes to start
    const without = await scheduled(T(idle), RATE, 25);
    expectStored("T without a purge", await count(idle.url, "tokens"), without.answered);

    const seeded = await seed(`sqlite:${workspace.file("sweep")}.sqlite`);
    fillTokens(`${workspace.file("sweep")}.sqlite`, EXPIRED, Date.now() - 3_600_000);
    const busy = await workspace.restart(seeded);
    await scheduled(T(busy), RATE, 8);
    const before = await count(busy.url, "tokens");
    const during = await scheduled(T(busy), RATE, 25);
    const purged = before - (await count(busy.url, "tokens")) + during.answered;
    if (purged < 1000) throw new Error(`only ${purged} rows were purged meanwhile`);
    const ratio = during.p99 / without.p99;
    return [
      {
        name: "p99 of T during a purge / without, ms",
        ours: during.p99,
        reference: without.p99,
        ratio,
        at_most: 2,
        ok: ratio <= 2,
        note: `${Math.round(purged / 25).toLocaleString("en")} rows purged per second`,
      },
    ];
  });

/** Large tables compared with empty ones. */
export const sizeRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const TOKENS = 5_000_000;
    const LINKS = 10_000_000;
    const FOLLOWED = 5000;
    const file = `${workspace.file("large")}.sqlite`;
    const port = await freePort();
    const seeded = await seed(`sqlite:${file}`, { port });
    fillTokens(file, TOKENS, Date.now() + 30 * 86_400_000);
    fillLinks(file, LINKS, seeded.organizationId);
    const large = await workspace.restart(seeded, { port });
    // Both databases have the same number of followed links, because clicks are counted per link.
    const small = await seed(`sqlite:${workspace.file("small")}.sqlite`);
    fillLinks(`${workspace.file("small")}.sqlite`, FOLLOWED, small.organizationId);
    const empty = await workspace.restart(small);
    const slugs = (links: number) =>
      Array.from({ length: FOLLOWED }, () => `f${1 + Math.floor(Math.random() * links)}`);
    const rows: Row[] = [];
    const pairs = {
      T: (server: typeof empty) => tokens(server.host, server.clients),
      R: async (server: typeof empty) =>
        links(server.host, await fetchToken(server.host, server.clients[0] as NewClient)),
      redirect: (server: typeof empty) => redirects(server.host, slugs(server === large ? LINKS : FOLLOWED)),
    };
    const expected = { T: 200, R: 201, redirect: 302 };
    const answers = { T: 0, R: 0, redirect: 0 };
    for (const name of ["T", "R", "redirect"] as const) {
      const measured = await interleaved(
        [
          { name: "large", port: large.port, next: await pairs[name](large), expected: expected[name] },
          { name: "empty", port: empty.port, next: await pairs[name](empty), expected: expected[name] },
        ],
        SECONDS,
      );
      answers[name] = answered(measured, "large");
      rows.push(
        compare(
          `${name}, 5 M tokens and 10 M links / none`,
          ...rates(measured, "large", "empty"),
          0.85,
          spread(measured, "large"),
        ),
      );
    }
    await large.server.stop(); // a graceful stop stores the last clicks
    expectStored("T", (await count(large.url, "tokens")) - TOKENS, answers.T);
    expectStored("R", (await count(large.url, "links")) - LINKS, answers.R);
    expectStored("redirect", await count(large.url, "links", "clicks"), answers.redirect);
    return rows;
  });
