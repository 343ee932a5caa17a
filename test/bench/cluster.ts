import { randomBytes } from "node:crypto";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { cleanUp } from "./cleanup.ts";
import { cpuMsOfCommands, wakeUs } from "./cpu-time.ts";
import { createsLinks } from "./engine.ts";
import { cpuOnSchedule, interleaved, type Measured, type Subject } from "./measure.ts";
import { answered, compare, compareValues, judged, type Row, rateRow } from "./table.ts";
import { OURS, versions } from "./versions.ts";
import { fetchToken, MIX_ANSWERS, mix, redirects, tokens } from "./workloads.ts";
import { count, expectStored, type Ours, section, type Workspace } from "./workspace.ts";

type Load = { subject: Subject; version: string; workload: string };

/** T, R and the redirect on PostgreSQL. */
export const postgresRows = () =>
  onPostgres(
    async (workspace, urls) => {
      const servers: Ours[] = [];
      const loads: Load[] = [];
      for (const [index, { name, root }] of versions.entries()) {
        const server = await workspace.oursOn(urls[index] as string, { root });
        servers.push(server);
        loads.push(...(await loadsOf(name, server)));
      }
      const measured = await interleaved(loads.map(({ subject }) => subject));
      const [{ url, server }] = servers as [Ours];
      await server.stop(); // a graceful stop stores the last clicks
      expectStored("T", await count(url, "tokens"), answered(measured, `T ${OURS}`));
      expectStored("R", await count(url, "links"), answered(measured, `R ${OURS}`));
      expectStored("redirect", await count(url, "links", "clicks"), answered(measured, `redirect ${OURS}`));
      const note = workspace.syncNote();
      return [
        compare("R / T, PostgreSQL", measured, [`R ${OURS}`, `T ${OURS}`], { atLeast: 0.8, note }),
        rateRow("redirect, PostgreSQL, per second", measured, `redirect ${OURS}`, note),
        ...loads
          .filter(({ version }) => version !== OURS)
          .map(({ subject, version, workload }) =>
            compare(`${workload}, PostgreSQL / ${version}`, measured, [`${workload} ${OURS}`, subject.name]),
          ),
      ];
    },
    { databases: versions.length },
  );

async function loadsOf(version: string, ours: Ours): Promise<Load[]> {
  const { server, host, clients, slug } = ours;
  const load = (workload: string, rest: Pick<Subject, "next" | "expected">): Load => ({
    subject: { name: `${workload} ${version}`, server, ...rest },
    version,
    workload,
  });
  return [
    load("T", { next: tokens(host, clients), expected: 200 }),
    load("R", await createsLinks(ours)),
    load("redirect", { next: redirects(host, [slug]), expected: 302 }),
  ];
}

// Workers don't have to cost more than this.
const MAX_CPU_RATIO = 1.1;
// Until the code of each worker is compiled: each gets half of the requests.
const WORKERS_WARM_UP_S = 6;
const PACED_S = 4;
const COMPARED = ["two", "one"] as const;

/** The mix, with one process and with two on the same database. */
export const workerRows = () =>
  onPostgres(async (workspace, [url]) => {
    const database = new URL(url as string).pathname.slice(1);
    const cores = [0, 1];
    const one = await workspace.oursOn(url as string, { cores });
    const two = await workspace.restart(one, { workers: 2, cores });
    const of = async (name: string, { server, host, clients, slug }: Ours) => ({
      name,
      server,
      next: mix(host, clients, await fetchToken(host, clients[0] as NewClient), [slug]),
      expected: MIX_ANSWERS,
    });
    const subjects = [await of("one", one), await of("two", two)] as const;
    const before = cpuMsOfCommands(database);
    const switchesBefore = [two, one].map(({ server }) => server.switches());
    const measured = await interleaved([...subjects], { warmUp: WORKERS_WARM_UP_S });
    const switches = [two, one].map(
      ({ server }, index) => server.switches() - (switchesBefore[index] as number),
    );
    const saturated = answered(measured, "one") + answered(measured, "two");
    const databaseUs = ((cpuMsOfCommands(database) - before) * 1000) / saturated;
    const rate = Math.floor(
      Math.max(...(measured.get("one") as Measured).levels.map((level) => level.rate)) / 2,
    );
    const [single, double] = subjects;
    const paced = await cpuOnSchedule(
      [
        { subject: single, rate },
        { subject: double, rate },
        { subject: single, rate: rate / 2 },
      ],
      PACED_S,
    );
    const [singleAtRate, atRate, singleAtHalf] = paced.cpuUs as [number, number, number];
    const requests = saturated + paced.answered;
    await Promise.all([one.server.stop(), two.server.stop()]);
    const [grants, made, clicks] = [
      count(one.url, "tokens"),
      count(one.url, "links"),
      count(one.url, "links", "clicks"),
    ];
    const stored = (await grants) + (await made) + (await clicks);
    expectStored("the mix", stored, requests);
    const [cpu, reference] = COMPARED.map((name) =>
      (measured.get(name) as Measured).levels.map(({ cpuUs }) => cpuUs),
    ) as [number[], number[]];
    const ratio = cpu.map((value, index) => value / (reference[index] as number));
    const perRequest = COMPARED.map((name, index) =>
      ((switches[index] as number) / answered(measured, name)).toFixed(2),
    );
    const note = [
      `µs per request; PostgreSQL: ${databaseUs.toFixed(0)} µs`,
      `context switches per request: ${perRequest.join(" / ")}; to be woken by a timer takes ${(await wakeUs()).toFixed(0)} µs`,
    ].join("; ");
    return [
      judged(
        { name: "CPU of the mix, PostgreSQL, WORKERS=2 / 1", ours: cpu, reference, ratio, note },
        { atMost: MAX_CPU_RATIO },
      ),
      compareValues(
        `CPU of the mix at ${rate.toLocaleString("en")} per second, PostgreSQL, WORKERS=2 / 1`,
        atRate,
        singleAtRate,
        { atMost: MAX_CPU_RATIO, note: "µs per request" },
      ),
      compareValues(
        "CPU of the mix, PostgreSQL, WORKERS=2 at that rate / 1 at half of it",
        atRate,
        singleAtHalf,
        { note: "µs per request" },
      ),
      compare("the mix, PostgreSQL, WORKERS=2 / 1", measured, [...COMPARED]),
    ];
  });

/** Runs on new databases of the server that `TEST_POSTGRES_URL` names. */
export async function onPostgres(
  run: (workspace: Workspace, urls: string[]) => Promise<Row[]>,
  { databases = 1 } = {},
): Promise<Row[]> {
  const server = process.env.TEST_POSTGRES_URL;
  if (!server) {
    console.log("SKIPPED PostgreSQL: TEST_POSTGRES_URL is not set");
    return [];
  }
  const names = Array.from({ length: databases }, () => `linkgate_bench_${randomBytes(4).toString("hex")}`);
  const urls = names.map((name) => Object.assign(new URL(server), { pathname: `/${name}` }).href);
  const knex = knexFactory(knexConfig(server));
  const drop = cleanUp(async () => {
    for (const name of names) await knex.raw(`drop database if exists ${name} with (force)`);
    await knex.destroy();
  });
  try {
    for (const name of names) await knex.raw(`create database ${name}`);
    return await section((workspace) => run(workspace, urls));
  } finally {
    await drop();
  }
}
