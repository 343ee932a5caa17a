import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import type { Storage } from "../../adapters/index.ts";
import manifest from "../../package.json" with { type: "json" };
import { Program, ROOT } from "./program.ts";

// Made with: git archive <commit> server adapters resources package.json | zstd -19
const ARCHIVE = path.join(ROOT, "test/processes/fixtures/linkgate-0.2.0.tar.zst");

// What the previous release needs and this one doesn't: a list of common passwords, which no test needs.
const STAND_INS: Record<string, string> = {
  "@zxcvbn-ts/language-common": "export const dictionary = new Proxy({}, { get: () => [] });",
};

/** The previous release, in a temporary folder. */
export type PreviousRelease = {
  /** Starts its server. */
  start(settings: Record<string, string>): Program;
  /** Opens a database with its stores. The methods that tests of both releases use are the same. */
  openStorage(url: string, encryptionKey: Uint8Array): Promise<Storage>;
  remove(): void;
};

/** Unpacks the previous release, which runs with the dependencies of this one. @throws Error if it can't */
export function unpackPreviousRelease(): PreviousRelease {
  const parent = mkdtempSync(path.join(tmpdir(), "linkgate-previous-"));
  const folder = path.join(parent, "linkgate");
  mkdirSync(folder);
  execFileSync("tar", ["-x", "-C", folder], { input: zstdDecompressSync(readFileSync(ARCHIVE)) });
  symlinkSync(path.join(ROOT, "node_modules"), path.join(parent, "node_modules"));
  for (const [name, source] of Object.entries(STAND_INS)) addPackage(folder, name, source);
  assertSameMajors(path.join(folder, "package.json"));
  const file = (name: string) => path.join(folder, name);
  return {
    start: (settings) =>
      new Program(process.execPath, ["--import", file("server/runtime.js"), file("server/main.ts")], {
        cwd: folder,
        settings,
      }),
    async openStorage(url, encryptionKey) {
      const { openStorage } = await import(file("adapters/index.ts"));
      return openStorage(url, encryptionKey);
    },
    remove: () => rmSync(parent, { recursive: true, force: true }),
  };
}

function addPackage(folder: string, name: string, source: string): void {
  const own = path.join(folder, "node_modules", name);
  mkdirSync(own, { recursive: true });
  writeFileSync(
    path.join(own, "package.json"),
    JSON.stringify({ name, type: "module", exports: "./index.js" }),
  );
  writeFileSync(path.join(own, "index.js"), source);
}

/** A release can't be expected to work with other major versions of its dependencies. */
function assertSameMajors(file: string): void {
  const { dependencies } = JSON.parse(readFileSync(file, "utf8")) as typeof manifest;
  const majorOf = (range = "") => /\d+/.exec(range)?.[0];
  const current: Record<string, string> = manifest.dependencies;
  const different = Object.entries(dependencies).filter(
    ([name, range]) => !(name in STAND_INS) && majorOf(range) !== majorOf(current[name]),
  );
  if (different.length > 0) {
    const names = different.map(([name]) => name).join(", ");
    throw new Error(`the previous release needs another major version of ${names}: archive a later release`);
  }
}
