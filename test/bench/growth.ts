import { createTally, saturate } from "./load.ts";
import { median } from "./measure.ts";
import { seed } from "./ours.ts";
import { startSeconds } from "./scale.ts";
import { compareValues, judged, type Row } from "./table.ts";
import { tokens } from "./workloads.ts";
import { type Ours, type Reference, section } from "./workspace.ts";

const REQUESTS = 100_000;
const CONNECTIONS = 16;
const TURN_S = 0.5;
const MAX_MB = 260;

/** Resident memory after many tokens. */
export const memoryRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const measure = async (server: Ours | Reference) => {
      const tally = createTally(200);
      while (tally.count() < REQUESTS) await issue(server, tally);
      return server.server.memory();
    };
    const ours = await measure(await workspace.ours("memory"));
    const reference = await measure(await workspace.reference("memory"));
    return [
      judged(
        {
          name: "memory after 100,000 T, beside oidc-provider in memory, MB",
          ours: [ours],
          reference: [reference],
        },
        { atMost: MAX_MB },
      ),
    ];
  });

const MINUTES = 10;
const MINUTE_MS = 60_000;
const MAX_GROWTH = 1.1;

/** Resident memory while tokens are issued as fast as possible for ten minutes. */
export const growthRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const server = await workspace.ours("growth");
    const tally = createTally(200);
    const minutes: number[] = [];
    for (let minute = 0; minute < MINUTES; minute++) {
      const end = performance.now() + MINUTE_MS;
      const samples: number[] = [];
      while (performance.now() < end) {
        await issue(server, tally);
        samples.push(server.server.memory());
      }
      minutes.push(median(samples));
    }
    const [, second, last] = [minutes[0], minutes[1] as number, minutes.at(-1) as number];
    return [
      compareValues("memory in the tenth minute of T / in the second, MB", last, second, {
        atMost: MAX_GROWTH,
        note: `${tally.count().toLocaleString("en")} tokens`,
      }),
    ];
  });

async function issue({ server, host, clients }: Ours | Reference, tally: ReturnType<typeof createTally>) {
  const next = tokens(host, clients);
  await saturate({ port: server.port, next, seconds: TURN_S, connections: CONNECTIONS }, tally);
  if (tally.wrong()) throw new Error(`${tally.wrong()} unexpected responses`);
}

/** The start of the server on a new database. */
export const startRows = () =>
  section(async (workspace): Promise<Row[]> => {
    const seconds = await startSeconds(workspace, await seed(`sqlite:${workspace.file("new")}.sqlite`));
    return [judged({ name: "start to ready, new database, s", ours: [seconds] }, { atMost: 1.5 })];
  });
