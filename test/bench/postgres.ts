import { hasPgBouncer, startPgBouncer } from "../harness/database/pgbouncer.ts";
import type { NextRequest } from "./load.ts";
import { interleaved, type Subject } from "./measure.ts";
import { cpuMsOf } from "./process.ts";
import { answered, compare, cpuOf, levelsOf, type Row, row } from "./table.ts";
import {
  createsLinks,
  fetchToken,
  followsLink,
  issuesTokens,
  links,
  redirects,
  tokens,
} from "./workloads.ts";
import { count, expectStored, type Ours, type Section, Skipped } from "./workspace.ts";

const WORKLOADS = { T: issuesTokens, R: createsLinks, redirect: followsLink };
const POOL_SIZE = 4;

/** T, R and redirects through PgBouncer in transaction mode and without, with the processor time of PgBouncer itself. */
export const pooler: Section = {
  async run(workspace) {
    const url = await workspace.database("postgres");
    if (!hasPgBouncer) throw new Skipped("PgBouncer is not installed");
    const bouncer = await startPgBouncer(url, { poolSize: POOL_SIZE });
    workspace.defer(bouncer.stop);
    const direct = await workspace.ours(url);
    const pooled = await workspace.restart({ ...direct, url: bouncer.url });
    const rows: Row[] = [];
    for (const [name, load] of Object.entries(WORKLOADS)) {
      const before = cpuMsOf(bouncer.pid);
      const measured = await interleaved([
        { name: "direct", ...(await load(direct)) },
        { name: "pooled", ...(await load(pooled)) },
      ]);
      const us = ((cpuMsOf(bouncer.pid) - before) * 1000) / answered(measured, "pooled");
      const note = `${POOL_SIZE} connections to PostgreSQL; PgBouncer: ${us.toFixed(0)} µs`;
      rows.push(compare(`${name} through PgBouncer / directly`, measured, ["pooled", "direct"], { note }));
    }
    return rows;
  },
};

// Workers don't have to cost more than this.
const MAX_CPU_RATIO = 1.1;
// Until the code of each worker is compiled: each gets half of the requests.
const WORKERS_WARM_UP_S = 6;

/** A typical mix, with one process and with two on the same database. */
export const workers: Section = {
  async run(workspace) {
    const cores = [0, 1];
    const one = await workspace.ours(await workspace.database("postgres"), { cores });
    const two = await workspace.restart(one, { workers: 2, cores });
    const measured = await interleaved([await mixed("one", one), await mixed("two", two)], {
      warmUp: WORKERS_WARM_UP_S,
    });
    await Promise.all([one.server.stop(), two.server.stop()]);
    const stored =
      (await count(one.url, "tokens")) +
      (await count(one.url, "links")) +
      (await count(one.url, "links", "clicks"));
    expectStored("the mix", stored, answered(measured, "one") + answered(measured, "two"));
    const [ours, reference] = [cpuOf(levelsOf(measured, "two")), cpuOf(levelsOf(measured, "one"))];
    return [
      row("CPU of the mix, PostgreSQL, WORKERS=2 / 1, µs", ours, { reference, atMost: MAX_CPU_RATIO }),
      compare("the mix, PostgreSQL, WORKERS=2 / 1", measured, ["two", "one"]),
    ];
  },
};

/** 70% redirects, 20% new links, 10% tokens. */
async function mixed(name: string, ours: Ours): Promise<Subject> {
  const { server, host, clients, slug } = ours;
  const token = await fetchToken(ours);
  const [follow, create, issue] = [redirects(host, slug), links(host, token), tokens(host, clients)];
  const next: NextRequest = (index) => (index % 10 === 0 ? issue : index % 10 < 3 ? create : follow)(index);
  return { name, server, next, expected: [200, 201, 302] };
}
