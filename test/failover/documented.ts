import { randomBytes, randomInt } from "node:crypto";
import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { blocksOf } from "../harness/examples.ts";
import { ROOT, temporaryFolder, UNPRIVILEGED } from "../harness/program.ts";

const DOCUMENT = "docs/operate/high-availability.md";
const BLOCKS = blocksOf(DOCUMENT);

export type Machine = "db1" | "db2" | "db3";

// Each run has a network of its own in 127.0.0.0/8, all of which is this machine, so the documented ports are free.
const NETWORK = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.`;
const APPLICATION = `${NETWORK}21`;
const PASSWORDS = new Map<string, string>();

/** Returns the address of a machine. */
export const hostOf = (machine: Machine) => `${NETWORK}1${machine.at(-1)}`;

/** Creates the folder with the files of a machine. */
export function createMachineFolder(name: string): string {
  const folder = temporaryFolder(name);
  own(folder);
  for (const inner of [
    ...["etc", "var", "var/lib", "var/run", "var/run/postgresql", "var/lib/etcd", "var/lib/mysql"],
  ]) {
    mkdirSync(path.join(folder, inner), { mode: 0o700 });
    own(path.join(folder, inner));
  }
  return folder;
}

/** Writes a file of the document, or other text for a file, to the folder of a machine. Returns its path. */
export function writeDocumented(name: string, folder: string, machine?: Machine, text = blockOf(name)) {
  const file = path.join(folder, "etc", path.basename(name));
  writeFileSync(file, adapt(text, folder, machine), { mode: 0o600 });
  own(file);
  return file;
}

function blockOf(name: string): string {
  return BLOCKS.find(({ code }) => code.startsWith(`# ${name}\n`))?.code ?? fail(name);
}

/** Returns the command of the document that begins so. */
export function documentedCommand(beginning: string, folder: string): string {
  const lines = BLOCKS.flatMap(({ language, code }) => (language === "sh" ? code.split("\n") : []));
  return adapt(lines.find((line) => line.startsWith(beginning)) ?? fail(beginning), folder);
}

/** Returns the document's URL of the database. */
export function documentedUrl(protocol: "postgres" | "mysql"): string {
  const text = readFileSync(ROOT + DOCUMENT, "utf8");
  const [url] = new RegExp(`${protocol}://linkgate:[^\\s\`]+`).exec(text) ?? [fail(protocol)];
  return adapt(url, "");
}

/** As the document says, its names and addresses of db1 differ on another machine, except in lists of all machines. */
function adapt(text: string, folder: string, machine: Machine = "db1"): string {
  const adaptLine = (line: string) =>
    /db2|10\.0\.0\.12/.test(line)
      ? line
      : line.replace(/^(.*name[:=\s]+)db1$/, `$1${machine}`).replaceAll("10.0.0.11", hostOf(machine));
  return text
    .split("\n")
    .map(adaptLine)
    .join("\n")
    .replaceAll("127.0.0.1", APPLICATION)
    .replaceAll("10.0.0.0/24", "127.0.0.0/8")
    .replaceAll("10.0.0.", NETWORK)
    .replaceAll(/\/(var|etc)\/(pgbouncer\/|patroni\/)?/g, `${folder}/$1/`)
    .replace("mode: required", "mode: off")
    .replaceAll(/<([\w-]+-password)>/g, (_, name) => passwordOf(name));
}

function passwordOf(name: string): string {
  const password = PASSWORDS.get(name) ?? randomBytes(12).toString("hex");
  PASSWORDS.set(name, password);
  return password;
}

function own(file: string): void {
  if (UNPRIVILEGED.uid !== undefined) chownSync(file, UNPRIVILEGED.uid, UNPRIVILEGED.uid);
}

function fail(what: string): never {
  throw new Error(`${DOCUMENT} has no ${what}`);
}
