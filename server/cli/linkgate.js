#!/usr/bin/env node
// Plain JavaScript: an older Node can't read TypeScript. If this Node is too old, the command runs again on the one
// that the development dependencies bring.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isNodeSupported } from "../node-version.js";

const PACKAGED_NODE = fileURLToPath(new URL("../../node_modules/node/bin/node", import.meta.url));

if (isNodeSupported() || !existsSync(PACKAGED_NODE)) {
  await import("../runtime.js");
  await import("./index.ts");
} else {
  rerun();
}

function rerun() {
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(PACKAGED_NODE, args, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code) => process.exit(code ?? 1));
}
