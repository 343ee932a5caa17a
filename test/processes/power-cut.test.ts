import { rmSync } from "node:fs";
import path from "node:path";
import test from "ava";
import Sqlite from "better-sqlite3";
import { openStorage } from "../../adapters/index.ts";
import { readKeyFile } from "../../server/keys/encryption-keys.ts";
import { apiAt } from "../harness/clients/api.ts";
import { atOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { type Image, powerCuts, randomFrom } from "../harness/power-cut/images.ts";
import { createRecorder, type Recorder } from "../harness/power-cut/recorder.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { rounds } from "../harness/rounds.ts";
import { populate, type TestOrganization } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";

const IMAGES = rounds(25, 500);
// A test checks so many, because a run ends after two minutes without a result.
const IMAGES_PER_TEST = 25;
const LANES = 8;
// Each ends with a stop or a kill. The first has several checkpoints.
const LOADS: [requests: number, signal: NodeJS.Signals][] = [
  [2000, "SIGTERM"],
  [200, "SIGKILL"],
  [200, "SIGTERM"],
];
const SEED = 20_261_124;
const TITLE = "SQLite: a power cut at any moment loses nothing that was acknowledged, and damages nothing";

test.after.always(stopPrograms);

const settingsIn = (folder: string) => ({
  DATABASE_URL: `sqlite:${path.join(folder, "data/linkgate.sqlite")}`,
  PORT: "0",
  RATE_LIMIT: "off",
  LOG_LEVEL: "error",
});

/** Runs a server on a recorded disk, again and again. */
async function run(recorder: Recorder): Promise<void> {
  const settings = { ...recorder.environment, ...settingsIn(recorder.folder) };
  let app: TestOrganization | undefined;
  for (const [requests, signal] of LOADS) {
    const server = startServer({ settings });
    const address = await addressOf(server);
    recorder.acknowledge("started");
    const [, clientId = "", clientSecret = ""] =
      /client id +(\S+)\n +client secret +(\S+)/.exec(server.stdout) ?? [];
    app ??= { clientId, clientSecret } as TestOrganization;
    await load(recorder, address, app, requests);
    server.kill(signal);
    await server.ended;
  }
}

async function load(recorder: Recorder, address: string, app: TestOrganization, count: number) {
  const { token } = populate(address, undefined as never);
  const { createLink } = apiAt(address, await token(app));
  let left = count;
  await atOnce(LANES, async () => {
    while (left-- > 0) {
      if (left % 2) recorder.acknowledge(`token ${await token(app)}`);
      else recorder.acknowledge(`link ${(await createLink()).slug}`);
    }
  });
}

/** Returns what is wrong with a database that a power cut has left. */
async function problemsOf({ folder, acknowledged }: Image): Promise<string[]> {
  if (acknowledged.length === 0) return [];
  const file = path.join(folder, "data/linkgate.sqlite");
  const database = new Sqlite(file, { fileMustExist: true });
  const integrity = String(database.pragma("integrity_check(1)", { simple: true }));
  database.close();
  if (integrity !== "ok") return [integrity];
  const storage = openStorage(`sqlite:${file}`, readKeyFile(path.join(folder, "data/encryption.key")));
  const lost = (await storage.keys.check()) ? [] : ["the signing keys"];
  for (const what of acknowledged) {
    const [kind, name = ""] = what.split(" ");
    if (kind === "link" && !(await storage.links.resolve(name))) lost.push(what);
    if (kind === "token" && !(await storage.findActiveToken(name))) lost.push(what);
  }
  await storage.close();
  return lost;
}

const recorder = engine === "sqlite" ? createRecorder() : undefined;
if (recorder) {
  let images: Iterator<Image>;
  test.before(async () => {
    await run(recorder);
    images = powerCuts(recorder, IMAGES, randomFrom(SEED));
  });
  for (let first = 1; first <= IMAGES; first += IMAGES_PER_TEST)
    test.serial(`${TITLE}: images ${first} to ${first + IMAGES_PER_TEST - 1}`, async (t) => {
      for (let number = 0; number < IMAGES_PER_TEST; number++) {
        const image = images.next().value as Image;
        t.deepEqual(await problemsOf(image), []);
        // The first as an operator would use it.
        if (number === 0) {
          const server = startServer({ settings: settingsIn(image.folder) });
          await addressOf(server);
          t.is((await server.stop()).code, 0, server.stdout + server.stderr);
        }
        rmSync(image.folder, { recursive: true });
      }
    });
} else if (engine === "sqlite") skip(TITLE, "gcc is not installed, or not on Linux");
