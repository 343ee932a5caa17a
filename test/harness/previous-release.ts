import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import type { Storage } from "../../adapters/index.ts";
import manifest from "../../package.json" with { type: "json" };
import { Program, ROOT } from "./program.ts";

/** The sources of the previous release, as `npm run release` has archived them. */
export const ARCHIVE = path.join(ROOT, "test/processes/fixtures/previous-release.tar.zst");

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

/** A release can't be expected to work with other major versions of its dependencies. */
function assertSameMajors(file: string): void {
  const previous = JSON.parse(readFileSync(file, "utf8")) as typeof manifest;
  const majorOf = (range = "") => /\d+/.exec(range)?.[0];
  const current = rangesOf(manifest, manifest.devDependencies);
  const different = Object.entries(rangesOf(previous)).filter(
    ([name, range]) => majorOf(range) !== majorOf(current[name]),
  );
  if (different.length > 0) {
    const names = different.map(([name]) => name).join(", ");
    throw new Error(`the previous release needs another major version of ${names}: archive a later release`);
  }
}

// What only the previous release needs is a development dependency, until a later release replaces the archive.
function rangesOf(release: typeof manifest, others = {}): Record<string, string> {
  return { ...others, ...release.dependencies, ...release.peerDependencies };
}
