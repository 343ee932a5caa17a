import type { NewClient } from "../../adapters/oauth/clients.ts";
import { interleaved, type Measured, type Subject } from "./measure.ts";
import { compare, type Row } from "./table.ts";
import {
  exchanges,
  fetchToken,
  introspections,
  inventClient,
  links,
  redirects,
  resourceServer,
  tokens,
} from "./workloads.ts";
import { count, expectStored, section } from "./workspace.ts";

const SECONDS = 4;
const SLUG = "bench";

/** T: tokens with the client credentials grant. */
export const tokenRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const client = inventClient();
    const full = await workspace.ours("full");
    const normal = await workspace.ours("normal", { normal: true });
    const memory = await workspace.reference("memory", client);
    const lean = await workspace.reference("nodeoauth", client, { DATABASE: workspace.file("lean.sqlite") });
    const of = (name: string, port: number, clients = [client]): Subject => ({
      name,
      port,
      next: tokens(`localhost:${port}`, clients),
      expected: 200,
    });
    const measured = await interleaved(
      [
        of("full", full.port, full.clients),
        of("normal", normal.port, normal.clients),
        of("memory", memory.port),
        of("lean", lean.port),
      ],
      SECONDS,
    );
    expectStored("T", await count(full.url, "tokens"), answered(measured, "full"));
    expectStored("T, normal", await count(normal.url, "tokens"), answered(measured, "normal"));
    return [
      compare(
        "T, SQLite full / oidc-provider in memory",
        ...rates(measured, "full", "memory"),
        0.65,
        spread(measured, "full"),
      ),
      compare("T, SQLite full / node-oauth2-server, full", ...rates(measured, "full", "lean"), 2),
      compare("T, SQLite normal / oidc-provider in memory", ...rates(measured, "normal", "memory")),
      {
        name: "memory after T, MB (oidc-provider in memory, for comparison)",
        ours: full.server.memory(),
        reference: memory.memory(),
      },
    ];
  });

/** R: links created with a token. */
export const resourceRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const floorClient = inventClient();
    const token = "floor-token";
    const full = await workspace.ours("full");
    const normal = await workspace.ours("normal", { normal: true });
    const floor = await workspace.reference("floor", floorClient, {
      DATABASE: workspace.file("floor.sqlite"),
      TOKEN: token,
      SLUG,
    });
    const [client] = full.clients;
    const writes = await interleaved(
      [
        {
          name: "full",
          port: full.port,
          next: links(full.host, await fetchToken(full.host, client as NewClient)),
          expected: 201,
        },
        {
          name: "normal",
          port: normal.port,
          next: links(normal.host, await fetchToken(normal.host, normal.clients[0] as NewClient)),
          expected: 201,
        },
        { name: "floor", port: floor.port, next: links(`localhost:${floor.port}`, token), expected: 201 },
      ],
      SECONDS,
    );
    expectStored("R", await count(full.url, "links"), answered(writes, "full"));
    expectStored("R, normal", await count(normal.url, "links"), answered(writes, "normal"));
    return [
      compare(
        "R, SQLite full / floor with group commit, full",
        ...rates(writes, "full", "floor"),
        0.8,
        spread(writes, "full"),
      ),
      compare("R, SQLite normal / floor with group commit, full", ...rates(writes, "normal", "floor")),
    ];
  });

/** Redirects of short links. */
export const redirectRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const full = await workspace.ours("full");
    const floor = await workspace.reference("floor", inventClient(), {
      DATABASE: workspace.file("floor.sqlite"),
      SLUG,
    });
    const clicks = await interleaved(
      [
        { name: "full", port: full.port, next: redirects(full.host, [full.slug]), expected: 302 },
        {
          name: "floor",
          port: floor.port,
          next: redirects(`localhost:${floor.port}`, [SLUG]),
          expected: 302,
        },
      ],
      SECONDS,
    );
    await full.server.stop(); // a graceful stop stores the last clicks
    expectStored("redirect", await count(full.url, "links", "clicks"), answered(clicks, "full"));
    return [
      compare(
        "redirect / bare Koa, cached SELECT, grouped count",
        ...rates(clicks, "full", "floor"),
        0.8,
        spread(clicks, "full"),
      ),
    ];
  });

/** I: introspection over HTTP. */
export const introspectionRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const client = inventClient();
    const ours = await workspace.ours("ours");
    const memory = await workspace.reference("memory", client);
    const own = await fetchToken(ours.host, ours.clients[0] as NewClient);
    const theirs = await fetchToken(`localhost:${memory.port}`, client);
    const measured = await interleaved(
      [
        {
          name: "ours",
          port: ours.port,
          next: introspections(ours.host, own, resourceServer),
          expected: 200,
        },
        {
          name: "memory",
          port: memory.port,
          next: introspections(`localhost:${memory.port}`, theirs, client),
          expected: 200,
        },
      ],
      SECONDS,
    );
    return [
      compare(
        "I / oidc-provider in memory",
        ...rates(measured, "ours", "memory"),
        0.8,
        spread(measured, "ours"),
      ),
    ];
  });

/** Authorization codes exchanged for an access and a refresh token. No reference stores this many codes. */
export const exchangeRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const CODES = 40_000; // more than any machine can exchange in the rounds
    const { url, host, port, clients, codes } = await workspace.ours("ours", { codes: CODES });
    const next = exchanges(host, clients[0] as NewClient, codes);
    const measured = await interleaved([{ name: "ours", port, next, expected: 200 }], 2);
    expectStored("code exchange", await count(url, "tokens"), answered(measured, "ours") * 2);
    const { rate } = measured.get("ours") as Measured;
    return [{ name: "code exchange, SQLite full, per second", ours: rate, note: spread(measured, "ours") }];
  });

/** 1,000 clients in turn, compared with one. */
export const clientRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const many = await workspace.ours("many", { clients: 1000 });
    const one = await workspace.ours("one");
    const measured = await interleaved(
      [
        { name: "many", port: many.port, next: tokens(many.host, many.clients), expected: 200 },
        { name: "one", port: one.port, next: tokens(one.host, one.clients), expected: 200 },
      ],
      SECONDS,
    );
    expectStored("T, 1,000 clients", await count(many.url, "tokens"), answered(measured, "many"));
    expectStored("T, 1 client", await count(one.url, "tokens"), answered(measured, "one"));
    return [
      compare(
        "T, 1,000 clients / 1 client",
        ...rates(measured, "many", "one"),
        0.9,
        spread(measured, "many"),
      ),
    ];
  });

export function rates(measured: Map<string, Measured>, ours: string, reference: string): [number, number] {
  return [(measured.get(ours) as Measured).rate, (measured.get(reference) as Measured).rate];
}

export function spread(measured: Map<string, Measured>, name: string): string {
  const { spread: share, p99 } = measured.get(name) as Measured;
  return `spread ${share.toFixed(0)} %, p99 ${p99.toFixed(1)} ms`;
}

export function answered(measured: Map<string, Measured>, name: string): number {
  return (measured.get(name) as Measured).answered;
}
