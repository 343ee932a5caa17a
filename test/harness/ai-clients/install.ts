import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import pLimit from "p-limit";
import { outputOf } from "../program.ts";
import type { AiClient } from "./clients.ts";

/** Where the packages are, and the version of the first one. */
export type Installation = { folder: string; version: string };

export const IS_NEWEST = process.env.TEST_AI_CLIENTS === "newest";

const CACHE = path.join(homedir(), ".cache/linkgate/ai-clients");
// npm uses both processors by itself.
const inTurn = pLimit(1);

export function install(client: AiClient): Promise<Installation> {
  return inTurn(async () => {
    const packages = Object.entries(client.packages).map(
      ([name, version]) => `${name}@${IS_NEWEST ? "latest" : version}`,
    );
    const folder = path.join(CACHE, packages.join("+").replaceAll("/", "-"));
    if (IS_NEWEST || !existsSync(folder)) await installInto(folder, packages);
    const [first = ""] = Object.keys(client.packages);
    const manifest = readFileSync(path.join(folder, "node_modules", first, "package.json"), "utf8");
    return { folder, version: JSON.parse(manifest).version };
  });
}

async function installInto(folder: string, packages: string[]): Promise<void> {
  // An interrupted installation leaves nothing in the cache that looks complete.
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  writeFileSync(path.join(unfinished, "package.json"), '{ "private": true }\n');
  const args = ["install", "--no-audit", "--no-fund", "--no-progress", "--save-exact", ...packages];
  // How this machine reaches the registry is in its environment.
  await outputOf("npm", args, { cwd: unfinished, settings: process.env as Record<string, string> });
  rmSync(folder, { recursive: true, force: true });
  renameSync(unfinished, folder);
}
