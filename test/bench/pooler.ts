import { hasPgBouncer, startPgBouncer } from "../harness/database/pgbouncer.ts";
import { cleanUp } from "./cleanup.ts";
import { onPostgres } from "./cluster.ts";
import { cpuMsOf } from "./cpu-time.ts";
import { createsLinks } from "./engine.ts";
import { interleaved } from "./measure.ts";
import { answered, compare, type Row } from "./table.ts";
import { redirects, tokens } from "./workloads.ts";
import type { Ours } from "./workspace.ts";

const WORKLOADS = {
  T: async ({ host, clients }: Ours) => ({ next: tokens(host, clients), expected: 200 }),
  R: createsLinks,
  redirect: async ({ host, slug }: Ours) => ({ next: redirects(host, [slug]), expected: 302 }),
};
const POOL_SIZE = 4;

/** T, R and redirects through PgBouncer in transaction mode and without, with the processor time of PgBouncer itself. */
export const poolerRows = () =>
  onPostgres(async (workspace, [url]) => {
    if (!hasPgBouncer) {
      console.log("SKIPPED PgBouncer: it is not installed");
      return [];
    }
    const pooler = await startPgBouncer(url as string, { poolSize: POOL_SIZE });
    const stop = cleanUp(pooler.stop);
    const direct = await workspace.oursOn(url as string);
    const pooled = await workspace.restart({ ...direct, url: pooler.url });
    const rows: Row[] = [];
    for (const [name, load] of Object.entries(WORKLOADS)) {
      const before = cpuMsOf(pooler.pid);
      const measured = await interleaved([
        { name: "direct", server: direct.server, ...(await load(direct)) },
        { name: "pooled", server: pooled.server, ...(await load(pooled)) },
      ]);
      const us = ((cpuMsOf(pooler.pid) - before) * 1000) / answered(measured, "pooled");
      const note = `${POOL_SIZE} connections to PostgreSQL; PgBouncer: ${us.toFixed(0)} µs`;
      rows.push(compare(`${name} through PgBouncer / directly`, measured, ["pooled", "direct"], { note }));
    }
    await workspace.close();
    await stop();
    return rows;
  });
