import type { NewClient } from "../../adapters/oauth/clients.ts";
import { KUTT, startKutt } from "./kutt.ts";
import { interleaved, type Subject } from "./measure.ts";
import { noteForReadme } from "./readme-table.ts";
import { type Comparison, compareSystems, startIn } from "./systems.ts";
import { answered, compare, type Row } from "./table.ts";
import { againstRows, OURS, startVersions } from "./versions.ts";
import { fetchToken, introspections, links, redirects, resourceServer, tokens } from "./workloads.ts";
import { count, expectStored, type Ours, type Reference, section } from "./workspace.ts";

const T: Comparison = {
  name: "T, SQLite full",
  title: "Tokens issued",
  load: async ({ host, clients }) => ({ next: tokens(host, clients), expected: 200 }),
  references: {
    memory: { atLeast: 0.8 },
    "node-oauth2-server": { atLeast: 2, onSlowDisks: true },
    "better-auth": {},
    "oidc-provider-knex": {},
  },
  storedIn: "tokens",
};

const R: Comparison = {
  name: "R, SQLite full",
  title: "Links created",
  load: createsLinks,
  references: {
    floor: { atLeast: 0.75 },
    "node-oauth2-server": {},
    "better-auth": {},
    "oidc-provider-knex": {},
  },
  storedIn: "links",
};

const I: Comparison = {
  name: "I, SQLite",
  title: "Tokens introspected",
  load: async (server) => {
    const [client] = server.clients as [NewClient];
    const token = await fetchToken(server.host, client);
    const by = "organizationId" in server ? resourceServer : client;
    return { next: introspections(server.host, token, by), expected: 200 };
  },
  references: { memory: { atLeast: 0.9 }, "better-auth": {}, "oidc-provider-knex": {} },
};

/** T: tokens with the client credentials grant. */
export const tokenRows = compareSystems(T);

/** R: links created with a token. */
export const resourceRows = compareSystems(R);

/** I: introspection over HTTP. */
export const introspectionRows = compareSystems(I);

/** Returns R for a server. */
export async function createsLinks(server: Ours | Reference): Promise<Pick<Subject, "next" | "expected">> {
  const known = "token" in server ? server.token : undefined;
  const token = known ?? (await fetchToken(server.host, server.clients[0] as NewClient));
  return { next: links(server.host, token), expected: 201 };
}

const followsLink = ({ host, slug }: { host: string; slug: string }) => ({
  next: redirects(host, [slug]),
  expected: 302,
});

/** Redirects of short links, whose clicks are counted. */
export const redirectRows = Object.assign(
  (parts: string[]) =>
    section(async (workspace): Promise<Row[]> => {
      const wants = (part: string) => parts.length === 0 || parts.includes(part);
      const { ours, subjects } = await startVersions(startIn(workspace), followsLink);
      const floor = wants("floor") ? await workspace.floor() : undefined;
      const kutt = wants("kutt") ? await startKutt(workspace) : undefined;
      if (floor) subjects.push({ name: "floor", server: floor.server, ...followsLink(floor) });
      if (kutt) subjects.push({ name: KUTT, server: kutt.server, ...followsLink(kutt) });
      const measured = await interleaved(subjects);
      await ours.server.stop(); // a graceful stop stores the last clicks
      expectStored("redirect", await count(ours.url, "links", "clicks"), answered(measured, OURS));
      if (kutt) expectStored(KUTT, await kutt.visits(), answered(measured, KUTT));
      noteForReadme("Redirects", measured);
      const rows: Row[] = [];
      if (floor) {
        const target = { atLeast: 1.5, note: workspace.syncNote() };
        const name = "redirect / bare Koa, cached SELECT, grouped count";
        rows.push(compare(name, measured, [OURS, "floor"], target));
      }
      if (kutt) rows.push(compare(`redirect / ${kutt.version}`, measured, [OURS, KUTT]));
      return [...rows, ...againstRows("redirect", measured)];
    }),
  { parts: ["floor", "kutt"] },
);

/** T from a thousand clients in turn, compared with T from one. */
export const clientRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const [many, one] = [await workspace.ours("many", { clients: 1000 }), await workspace.ours("one")];
    const of = (name: string, { server, host, clients }: Ours): Subject => ({
      name,
      server,
      next: tokens(host, clients),
      expected: 200,
    });
    const measured = await interleaved([of("many", many), of("one", one)], { connections: [16] });
    expectStored("T, 1,000 clients", await count(many.url, "tokens"), answered(measured, "many"));
    expectStored("T, 1 client", await count(one.url, "tokens"), answered(measured, "one"));
    return [compare("T, 1,000 clients / 1 client", measured, ["many", "one"], { atLeast: 0.9 })];
  });
