import { globSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { forward } from "../../harness/balancer.ts";
import { startApp } from "../../harness/clients/app-server.ts";
import { type Ending, Program, temporaryFolder } from "../../harness/program.ts";

const resolve = createRequire(import.meta.url).resolve;

/** The versions of `@modelcontextprotocol/conformance`: the newest stable one, and the newest alpha. */
export type Version = "mcp-conformance" | "mcp-conformance-alpha";

export type Check = {
  scenario: string;
  id: string;
  status: "SUCCESS" | "FAILURE" | "WARNING" | "INFO" | "SKIPPED";
};

/** Starts a command of the suite. */
export function start(version: Version, args: string[]): Program {
  return new Program(process.execPath, [resolve(`${version}/dist/index.js`), ...args]);
}

export async function run(version: Version, args: string[]): Promise<Ending & { checks: Check[] }> {
  const folder = temporaryFolder("mcp");
  const ending = await start(version, [...args, "--output-dir", folder]).ended;
  return { ...ending, checks: checksIn(folder) };
}

/** Each scenario has a folder: `server-<scenario>-<time>`. */
function checksIn(folder: string): Check[] {
  return globSync("*/checks.json", { cwd: folder }).flatMap((file) => {
    const scenario = file.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    const checks: Omit<Check, "scenario">[] = JSON.parse(readFileSync(path.join(folder, file), "utf8"));
    return checks.map(({ id, status }) => ({ scenario, id, status }));
  });
}

/** Adds a token to requests to the MCP endpoint: the suite has no option for one. Host and Origin stay as they are. */
export async function startTokenProxy(port: number) {
  let authorization: string | undefined;
  const { port: own, close } = await startApp((req, res) =>
    forward(req, res, port, authorization && req.url?.startsWith("/mcp") ? { authorization } : {}),
  );
  return {
    url: `http://localhost:${own}`,
    use(token: string): void {
      authorization = `Bearer ${token}`;
    },
    close,
  };
}
