#!/usr/bin/env node
// Plain JavaScript: an older Node can't read TypeScript. If the Node of a clone is too old, the command runs again on
// the one that the development dependencies bring.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

// A clone has the sources; the npm package has what is built from them.
const isClone = existsSync(new URL("index.ts", import.meta.url));
const SERVER = new URL(isClone ? "../" : "../../dist/server/", import.meta.url);
const PACKAGED_NODE = fileURLToPath(new URL("../../node_modules/node/bin/node", import.meta.url));

const { isNodeSupported } = await import(`${SERVER}node-version.js`);
if (isNodeSupported() || !isClone || !existsSync(PACKAGED_NODE)) {
  await import(`${SERVER}runtime.js`);
  await import(`${SERVER}cli/index.${isClone ? "ts" : "js"}`);
} else {
  rerun();
}

function rerun() {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(PACKAGED_NODE, args, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code) => process.exit(code ?? 1));
}
