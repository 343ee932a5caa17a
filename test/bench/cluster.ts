import { randomBytes } from "node:crypto";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { answered, rates, spread } from "./engine.ts";
import { interleaved, type Measured } from "./measure.ts";
import { compare, type Row } from "./table.ts";
import { fetchToken, links, MIX_ANSWERS, mix, redirects, tokens } from "./workloads.ts";
import { count, expectStored, section, type Workspace } from "./workspace.ts";

const SECONDS = 4;

/** T, R and the redirect on PostgreSQL. */
export const postgresRows = () =>
  onPostgres(async (workspace, url) => {
    const { host, port, clients, slug, server } = await workspace.oursOn(url);
    const token = await fetchToken(host, clients[0] as NewClient);
    const measured = await interleaved(
      [
        { name: "T", port, next: tokens(host, clients), expected: 200 },
        { name: "R", port, next: links(host, token), expected: 201 },
        { name: "redirect", port, next: redirects(host, [slug]), expected: 302 },
      ],
      SECONDS,
    );
    await server.stop(); // a graceful stop stores the last clicks
    expectStored("T", await count(url, "tokens"), answered(measured, "T"));
    expectStored("R", await count(url, "links"), answered(measured, "R"));
    expectStored("redirect", await count(url, "links", "clicks"), answered(measured, "redirect"));
    return [...measured].map(([name, { rate }]) => ({
      name: `${name}, PostgreSQL, per second`,
      ours: rate,
      note: spread(measured, name),
    }));
  });

/** The mix, with one process and with two on the same database. */
export const workerRows = () =>
  onPostgres(async (workspace, url) => {
    const cores = [0, 1];
    const one = await workspace.oursOn(url, { cores });
    const two = await workspace.restart(one, { workers: 2, cores });
    const of = async (name: string, { host, port, clients, slug }: typeof one) => ({
      name,
      port,
      next: mix(host, clients, await fetchToken(host, clients[0] as NewClient), [slug]),
      expected: MIX_ANSWERS,
    });
    const measured = await interleaved([await of("one", one), await of("two", two)], SECONDS);
    await Promise.all([one.server.stop(), two.server.stop()]);
    const [grants, made, clicks] = [count(url, "tokens"), count(url, "links"), count(url, "links", "clicks")];
    const stored = (await grants) + (await made) + (await clicks);
    expectStored("the mix", stored, answered(measured, "one") + answered(measured, "two"));
    const { rate } = measured.get("one") as Measured;
    return [
      compare(
        "the mix, PostgreSQL, WORKERS=2 / 1",
        ...rates(measured, "two", "one"),
        1.5,
        spread(measured, "two"),
      ),
      { name: "the mix, PostgreSQL, WORKERS=1, per second", ours: rate },
    ];
  });

/** Runs on a new database of the server that `TEST_POSTGRES_URL` names. */
export async function onPostgres(run: (workspace: Workspace, url: string) => Promise<Row[]>): Promise<Row[]> {
  const server = process.env.TEST_POSTGRES_URL;
  if (!server) {
    console.log("SKIPPED PostgreSQL: TEST_POSTGRES_URL is not set");
    return [];
  }
  const name = `linkgate_bench_${randomBytes(4).toString("hex")}`;
  const administer = async (statement: string) => {
    const knex = knexFactory(knexConfig(server));
    await knex.raw(statement).finally(() => knex.destroy());
  };
  await administer(`create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  try {
    return await section((workspace) => run(workspace, url.href));
  } finally {
    await administer(`drop database ${name} with (force)`);
  }
}
