import type { NewClient } from "../../adapters/oauth/clients.ts";
import { interleaved } from "./measure.ts";
import { answered, compare, type Row } from "./table.ts";
import { againstRows, OURS, startVersions } from "./versions.ts";
import { exchanges, refreshes, tokens } from "./workloads.ts";
import { count, expectStored, type Ours, section } from "./workspace.ts";

// Creating them takes longer than exchanging them, so the rounds of the exchange are short.
const CODES = 45_000;
const EXCHANGE_S = 1;
// 1.8 × 1,130 per second, on a machine where oidc-provider in memory issued 7,523 tokens per second (T).
const TARGET = (1.8 * 1130) / 7523;

/** Code exchange and refresh: each is compared with T of oidc-provider in memory. */
export const exchangeRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const refreshTokens = new Map<Ours, string[]>();
    const { ours, subjects } = await startVersions(
      ({ name, root }) => workspace.ours(name, { codes: CODES, root }),
      (server) => {
        const collected: string[] = [];
        refreshTokens.set(server, collected);
        return { next: exchanges(server.host, server, collected), expected: 200 };
      },
    );
    const memory = await workspace.reference("memory");
    const T = {
      name: "memory",
      server: memory.server,
      next: tokens(memory.host, memory.clients),
      expected: 200,
    };
    const before = await count(ours.url, "tokens");
    const exchanged = await interleaved([...subjects, T], { seconds: EXCHANGE_S });
    // A used code is kept. An access token and a refresh token are added.
    const stored = (await count(ours.url, "tokens")) - before;
    expectStored("tokens of exchanges", stored, 2 * answered(exchanged, OURS));
    const refreshing = [...refreshTokens].map(([server, collected], index) => ({
      name: subjects[index]?.name as string,
      server: server.server,
      next: refreshes(server.host, server.clients[0] as NewClient, collected),
      expected: 200,
    }));
    const refreshed = await interleaved([...refreshing, T]);
    const issued = (await count(ours.url, "tokens")) - before - stored;
    expectStored("tokens of refreshes", issued, answered(refreshed, OURS));
    const target = { atLeast: Number(TARGET.toFixed(2)), note: workspace.syncNote() };
    return [
      compare(
        "code exchange, SQLite full / T of oidc-provider in memory",
        exchanged,
        [OURS, "memory"],
        target,
      ),
      ...againstRows("code exchange, SQLite full", exchanged),
      compare("refresh, SQLite full / T of oidc-provider in memory", refreshed, [OURS, "memory"], target),
      ...againstRows("refresh, SQLite full", refreshed),
    ];
  });
