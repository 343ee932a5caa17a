// A thread that runs the test files it is sent, one after the other, with the runner of ava. Code that is warm is fast: a
// thread of its own for each file took twice the processor time.

import { createRequire, enableCompileCache, registerHooks } from "node:module";
import path from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { TestFn } from "ava";
import { closeAll } from "../harness/closing.ts";
import { declareWith } from "./current-test.ts";
import "./load-bundle.ts";
import { type Message, type RunnerEvent, toFailure, toMessage, WAITS_FOR } from "./messages.ts";

export type WorkerOptions = { compileCache: string; match: string[]; failFast: boolean };

type Runner = { chain: TestFn; on(event: string, listen: (event: { data: RunnerEvent }) => void): void };

const { compileCache, match, failFast } = workerData as WorkerOptions;
enableCompileCache(compileCache);
const port = parentPort as MessagePort;

// The version of ava is exact, so these modules don't change unnoticed.
const AVA = path.join(path.dirname(createRequire(import.meta.url).resolve("ava")), "../lib");
const load = (file: string) => import(pathToFileURL(path.join(AVA, file)).href);
(await load("chalk.js")).set({ level: 0 });
const { default: Runner } = (await load("runner.js")) as { default: new (options: object) => Runner };
const { default: serialize } = await load("serialize-error.js");

const { href: TEST } = new URL("current-test.ts", import.meta.url);
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "ava" ? { url: TEST, shortCircuit: true } : next(specifier, context),
});

let testFile = "";
const send = (message: Message) => port.postMessage({ testFile, ...message });
const sendError = (type: string, error: unknown) =>
  send({ type, error: toFailure(serialize(error, { testFile })) });

const unhandled = new Map<Promise<unknown>, unknown>();
process.on("unhandledRejection", (reason, promise) => unhandled.set(promise, reason));
process.on("rejectionHandled", (promise) => unhandled.delete(promise));
process.on("uncaughtException", (error) => {
  sendError("uncaught-exception", error);
  exit(1);
});
const exit = process.exit.bind(process);
process.exit = (code) => {
  send({ type: "process-exit", stack: new Error("process.exit()").stack });
  return exit(code);
};

port.on("message", (file: string | undefined) => {
  if (file === WAITS_FOR)
    return send({ type: "waits", text: `waits for ${process.getActiveResourcesInfo().join(", ")}\n` });
  if (file !== undefined) return void run(file);
  // Those of a file that did not finish.
  sendUnhandled();
  exit(0);
});

async function run(file: string): Promise<void> {
  testFile = file;
  send({ type: "starting" });
  const runner = new Runner({ file, projectDir: process.cwd(), match, failFast });
  const finished = Promise.withResolvers<void>();
  runner.on("stateChange", ({ data }) => send(toMessage(data)));
  runner.on("finish", () => {
    port.ref();
    finished.resolve();
  });
  runner.on("error", ({ data }) => finished.reject(data));
  const hasTests = declareWith(runner.chain);
  try {
    // A test that waits for nothing then ends the loop, and fails.
    port.unref();
    await import(pathToFileURL(file).href);
    if (hasTests()) await finished.promise;
    else send({ type: "no-tests" });
  } catch (error) {
    sendError("uncaught-exception", error);
    exit(1);
  } finally {
    port.ref();
  }
  await closeAll().catch((error) => sendError("uncaught-exception", error));
  await nextTurn();
  sendUnhandled();
  send({ type: "worker-finished" });
}

function sendUnhandled(): void {
  for (const reason of unhandled.values()) sendError("unhandled-rejection", reason);
  unhandled.clear();
}
