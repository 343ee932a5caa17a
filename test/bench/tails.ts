import { createsLinks } from "./engine.ts";
import { fill } from "./fill.ts";
import { interleaved, type Level, type Measured, median, type Subject, scheduled } from "./measure.ts";
import { seed } from "./ours.ts";
import { compareValues, type Row } from "./table.ts";
import { links, redirects, tokens } from "./workloads.ts";
import { count, expectStored, section, type Workspace } from "./workspace.ts";

const ROUNDS = 5;
const ROUND_S = 2;
const MAX_TAIL_RATIO = 3;

/**
 * Latencies of scheduled requests, at half of the rate that saturates linkgate, compared with the fastest reference on the
 * same schedule.
 */
export const latencyRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const ours = await workspace.ours("latency");
    const [memory, floor] = [await workspace.reference("memory"), await workspace.floor()];
    const T = (host: string, clients = ours.clients) => ({ next: tokens(host, clients), expected: 200 });
    const redirect = (host: string, slug: string) => ({ next: redirects(host, [slug]), expected: 302 });
    const named = (name: string, server: Subject["server"], rest: Pick<Subject, "next" | "expected">) => ({
      name,
      server,
      ...rest,
    });
    const pairs: Record<string, [Subject, Subject]> = {
      T: [
        named("T", ours.server, T(ours.host)),
        named("oidc-provider in memory", memory.server, T(memory.host, memory.clients)),
      ],
      R: [
        named("R", ours.server, await createsLinks(ours)),
        named("floor", floor.server, { next: links(floor.host, floor.token), expected: 201 }),
      ],
      redirect: [
        named("redirect", ours.server, redirect(ours.host, ours.slug)),
        named("floor", floor.server, redirect(floor.host, floor.slug)),
      ],
    };
    const rows: Row[] = [];
    const answers: number[] = [];
    for (const [name, [subject, reference]] of Object.entries(pairs)) {
      const warm = (await interleaved([subject, reference], { seconds: 1, connections: [16] })).get(name);
      const { levels, answered } = warm as Measured;
      const rate = Math.floor((levels[0] as Level).rate / 2);
      const tails = await alternate(subject, reference, rate);
      answers.push(answered + tails.answered);
      rows.push(
        compareValues(
          `p99 of ${name} at ${rate.toLocaleString("en")} per second / ${reference.name}, ms`,
          tails.ours,
          tails.reference,
          { atMost: MAX_TAIL_RATIO, note: `p50 ${tails.p50.toFixed(2)} ms, ${workspace.syncNote()}` },
        ),
      );
    }
    await ours.server.stop(); // a graceful stop stores the last clicks
    const [grants = 0, made = 0, clicks = 0] = answers;
    expectStored("T on schedule", await count(ours.url, "tokens"), grants);
    expectStored("R on schedule", await count(ours.url, "links"), made);
    expectStored("redirect on schedule", await count(ours.url, "links", "clicks"), clicks);
    return rows;
  });

/** Returns the median p99 of some rounds of each. */
async function alternate(subject: Subject, reference: Subject, rate: number) {
  const [ours, theirs] = [[] as { p50: number; p99: number; answered: number }[], [] as { p99: number }[]];
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(await scheduled(subject, rate, ROUND_S));
    theirs.push(await scheduled(reference, rate, ROUND_S));
  }
  return {
    ours: median(ours.map(({ p99 }) => p99)),
    p50: median(ours.map(({ p50 }) => p50)),
    reference: median(theirs.map(({ p99 }) => p99)),
    answered: ours.reduce((sum, { answered }) => sum + answered, 0),
  };
}

const EXPIRED = 1_000_000;
const PURGE_RATE = 500;
const UNTIL_PURGE_S = 8; // the purge starts 5 seconds after the server
const PURGE_S = 16;
const PURGE_ROUNDS = 3;
const MAX_PURGE_RATIO = 1.5;

/**
 * Scheduled T while a million expired rows are purged, compared with T without a purge: on new servers in turn, over the
 * same seconds of their lives, because a young process compiles code and enlarges its heap and its log.
 */
export const sweepRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const idle: Awaited<ReturnType<typeof measureT>>[] = [];
    const busy: typeof idle = [];
    for (let round = 0; round < PURGE_ROUNDS; round++) {
      idle.push(await measureT(workspace, `idle-${round}`, 0));
      busy.push(await measureT(workspace, `sweep-${round}`, EXPIRED));
    }
    const purged = median(busy.map((measured) => measured.purged));
    if (purged < 1000) throw new Error(`only ${purged} rows were purged meanwhile`);
    const p99 = (rounds: typeof idle) => median(rounds.map((measured) => measured.p99));
    const perSecond = Math.round(purged / PURGE_S).toLocaleString("en");
    return [
      compareValues("p99 of T during a purge / without, ms", p99(busy), p99(idle), {
        atMost: MAX_PURGE_RATIO,
        note: `${perSecond} rows purged per second, ${workspace.syncNote()}`,
      }),
    ];
  });

/** Measures T on a new server, on a database with so many expired tokens. */
async function measureT(workspace: Workspace, name: string, expired: number) {
  const seeded = await seed(`sqlite:${workspace.file(name)}.sqlite`);
  if (expired > 0) await fill(seeded.url, { tokens: { count: expired, expiresAt: Date.now() - 3_600_000 } });
  const { server, host, clients, url } = await workspace.restart(seeded);
  const T: Subject = { name: "T", server, next: tokens(host, clients), expected: 200 };
  await scheduled(T, PURGE_RATE, UNTIL_PURGE_S);
  const stored = await count(url, "tokens");
  const { p99, answered } = await scheduled(T, PURGE_RATE, PURGE_S);
  const purged = stored - (await count(url, "tokens")) + answered;
  await server.stop();
  return { p99, purged };
}
