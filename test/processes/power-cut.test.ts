import { rmSync, statSync } from "node:fs";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import Sqlite from "better-sqlite3";
import { openStorage } from "../../adapters/index.ts";
import { readKeyFile } from "../../server/keys/encryption-keys.ts";
import { apiAt } from "../harness/clients/api.ts";
import { atOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { type Image, powerCuts, randomFrom } from "../harness/power-cut/images.ts";
import { createRecorder, type Recorder } from "../harness/power-cut/recorder.ts";
import { addressOf, type Program, runCommand, startServer, stopPrograms } from "../harness/program.ts";
import { rounds } from "../harness/rounds.ts";
import { populate } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";

const IMAGES = rounds(50, 500);
const STARTS_PER_TEST = 1;
const LANES = 8;
// The first has several checkpoints.
const LOADS = [4200, 300, 300];
// A test checks so many, because a run ends after two minutes without a result.
const IMAGES_PER_TEST = 25;
const SEED = 20_261_124;

test.after.always(stopPrograms);

type Finding = { damaged?: string; unreadableKeys?: string; lost: string[] };

/** Runs a server on a recorded disk: starts, load, a rotation of the encryption key, a clean stop and a kill. */
async function run(recorder: Recorder, options = ""): Promise<void> {
  const settings = {
    ...recorder.environment,
    DATABASE_URL: `sqlite:${path.join(recorder.folder, "data/linkgate.sqlite")}${options}`,
    PORT: "0",
    RATE_LIMIT: "off",
    LOG_LEVEL: "error",
  };

  async function start(): Promise<{ server: Program; address: string }> {
    const server = startServer({ settings });
    const address = await addressOf(server);
    recorder.acknowledge("started");
    return { server, address };
  }

  async function load(
    address: string,
    client: { clientId: string; clientSecret: string },
    count = 0,
  ): Promise<void> {
    const { token } = populate(address, undefined as never);
    const app = { ...client, secretId: "" } as unknown as Parameters<typeof token>[0];
    const { createLink } = apiAt(address, await token(app));
    let left = count;
    await atOnce(LANES, async () => {
      while (left-- > 0) {
        if (left % 2) recorder.acknowledge(`token ${await token(app)}`);
        else recorder.acknowledge(`link ${(await createLink()).slug}`);
      }
    });
  }

  const { server, address } = await start();
  const [, clientId = ""] = await server.says(/client id +(\S+)/);
  const [, clientSecret = ""] = await server.says(/client secret +(\S+)/);
  const client = { clientId, clientSecret };
  const rotated = runCommand(["keys", "rotate", "encryption", "--json"], { settings });
  await load(address, client, LOADS[0]);
  const { code, stderr } = await rotated;
  if (code !== 0) throw new Error(stderr);
  recorder.acknowledge("rotated");
  await server.stop();

  const second = await start();
  await load(second.address, client, LOADS[1]);
  second.server.killGroup();
  await second.server.ended;

  const third = await start();
  await load(third.address, client, LOADS[2]);
  await third.server.stop();
}

/** Checks a database that a power cut has left. */
async function check({ folder, acknowledged }: Image): Promise<Finding> {
  const finding: Finding = { lost: [] };
  const file = path.join(folder, "data/linkgate.sqlite");
  const keyFile = path.join(folder, "data/encryption.key");
  if (acknowledged.length === 0) return finding;
  try {
    const database = new Sqlite(file, { fileMustExist: true });
    const problem = database.pragma("integrity_check(1)", { simple: true });
    if (problem !== "ok") finding.damaged = String(problem);
    const isMigrated = database.prepare("select 1 from sqlite_schema where name = 'links'").get();
    const slugs = new Set(isMigrated ? database.prepare("select slug from links").pluck().all() : []);
    database.close();
    if (!isMigrated) return { ...finding, lost: acknowledged };
    finding.lost = acknowledged.filter((what) => {
      const [kind, name] = what.split(" ");
      return kind === "link" && !slugs.has(name);
    });
  } catch (error) {
    finding.damaged = String(error);
    return finding;
  }
  try {
    const storage = openStorage(`sqlite:${file}`, readKeyFile(keyFile));
    for (const what of acknowledged) {
      const [kind, token = ""] = what.split(" ");
      if (kind === "token" && !(await storage.findActiveToken(token))) finding.lost.push(what);
    }
    if (!(await storage.keys.check())) finding.lost.push("the signing keys");
    await storage.close();
  } catch (error) {
    finding.unreadableKeys = String(error);
  }
  return finding;
}

/** Starts the server on the disk, as an operator would. Returns its output if it doesn't start and stop. */
async function startOn({ folder }: Image): Promise<string | undefined> {
  const settings = {
    DATABASE_URL: `sqlite:${path.join(folder, "data/linkgate.sqlite")}`,
    PORT: "0",
    LOG_LEVEL: "error",
  };
  const server = startServer({ settings });
  const isListening = await addressOf(server).then(
    () => true,
    () => false,
  );
  const { code, stdout, stderr } = await server.stop();
  return isListening && code === 0 ? undefined : stdout + stderr;
}

/** Checks the next images, and removes them. */
async function checkNext(images: Iterator<Image>, starts: number) {
  const found = { damaged: [] as string[], unreadableKeys: [] as string[], lossy: 0, lost: 0 };
  const failedStarts: string[] = [];
  for (let index = 0; index < IMAGES_PER_TEST; index++) {
    const image = images.next().value as Image;
    const { damaged, unreadableKeys, lost } = await check(image);
    if (damaged) found.damaged.push(damaged);
    if (unreadableKeys) found.unreadableKeys.push(unreadableKeys);
    if (lost.length > 0) found.lossy++;
    found.lost += lost.length;
    if (index < starts) {
      const output = await startOn(image);
      if (output !== undefined) failedStarts.push(output);
    }
    rmSync(image.folder, { recursive: true });
  }
  return { ...found, failedStarts };
}

/** Declares the test that records a run, and those that check its images. */
function testImages(
  options: string,
  title: string,
  checkImages: (t: ExecutionContext, images: Iterator<Image>) => Promise<void>,
) {
  const recorder = createRecorder();
  if (!recorder) return skip(title, "gcc is not installed, or not on Linux");
  let images: Iterator<Image>;
  test.after.always(recorder.remove);
  test.serial(
    `SQLite: everything that a server does to its disk is recorded${options && `, with ${options}`}`,
    async (t) => {
      await run(recorder, options);
      images = powerCuts(recorder, IMAGES, randomFrom(SEED));
      t.true(statSync(recorder.log).size > 0);
    },
  );
  for (let first = 1; first <= IMAGES; first += IMAGES_PER_TEST)
    test.serial(`${title}: images ${first} to ${first + IMAGES_PER_TEST - 1}`, (t) => checkImages(t, images));
}

if (engine === "sqlite") {
  testImages(
    "",
    "SQLite: a power cut at any moment loses nothing that was acknowledged",
    async (t, images) => {
      const nothing = { damaged: [], unreadableKeys: [], lossy: 0, lost: 0, failedStarts: [] };
      t.deepEqual(await checkNext(images, STARTS_PER_TEST), nothing);
    },
  );
  testImages(
    "?synchronous=normal",
    "SQLite: with ?synchronous=normal, a power cut loses writes, but damages nothing",
    async (t, images) => {
      const { damaged, unreadableKeys, lossy } = await checkNext(images, 0);
      t.deepEqual({ damaged, unreadableKeys }, { damaged: [], unreadableKeys: [] });
      t.true(lossy > 0);
    },
  );
}
