import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** The tokens of a person on a server. Times are epoch milliseconds. */
export type Login = { server: string; accessToken: string; refreshToken: string; expiresAt: number };

/** In the folder of the XDG Base Directory Specification. */
async function fileOf(): Promise<string> {
  // Not above, so the help loads no database.
  const { readVariables } = await import("../settings/config.ts");
  const { XDG_CONFIG_HOME: configuration = path.join(homedir(), ".config") } =
    readVariables("XDG_CONFIG_HOME");
  return path.join(configuration, "linkgate", "login.json");
}

export async function readLogin(): Promise<Login | undefined> {
  const file = await fileOf();
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Replaces the file in one step. Only its owner can read it. */
export async function writeLogin(login: Login): Promise<void> {
  const file = await fileOf();
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const next = `${file}.${process.pid}`;
  writeFileSync(next, JSON.stringify(login), { mode: 0o600 });
  renameSync(next, file);
}

export async function deleteLogin(): Promise<void> {
  rmSync(await fileOf(), { force: true });
}
