import { readFileSync } from "node:fs";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");
const { TEST_CONCURRENCY = "3", TEST_DURATIONS } = process.env;
const durations = TEST_DURATIONS ? JSON.parse(readFileSync(TEST_DURATIONS, "utf8")) : {};
const durationOf = (file) => durations[path.relative(ROOT, file)] ?? Number.POSITIVE_INFINITY;

export default {
  extensions: ["ts"],
  files: ["test/**/*.test.ts"],
  concurrency: Number(TEST_CONCURRENCY),
  timeout: "2m",
  workerThreads: true,
  require: ["./test/runner/load-bundle.ts"],
  // The slowest first: none then runs alone at the end.
  sortTestFiles: (one, other) => durationOf(other) - durationOf(one) || one.localeCompare(other),
  // The version of ava is exact, so this interface doesn't change unnoticed.
  nonSemVerExperiments: { observeRunsFromConfig: true },
  /** Sends the events of the run to test/run.ts. */
  async observeRun({ events }) {
    if (!process.send) return;
    for await (const event of events) if (event.type !== "stats") process.send(toMessage(event));
  },
};

/** Returns the parts of an event that can be sent and that the report needs. */
function toMessage({
  type,
  testFile,
  title,
  duration,
  skip,
  logs,
  err,
  stack,
  chunk,
  pendingTests,
  ...rest
}) {
  return {
    type,
    testFile,
    title,
    duration,
    skip,
    logs,
    stack,
    status: rest.nonZeroExitCode ?? rest.signal,
    forcedExit: rest.forcedExit,
    error: err && toError(err),
    text: chunk && Buffer.from(chunk).toString(),
    pending: pendingTests && [...pendingTests].map(([file, titles]) => ({ file, titles: [...titles] })),
  };
}

function toError({ message, stack, source, formattedDetails = [], formattedError, formattedCause, errors }) {
  const details = formattedDetails.map(({ label, formatted }) => `${label}\n\n${formatted}`);
  return {
    message: message ?? formattedError,
    stack,
    source: source && { file: source.file, line: source.line },
    details: [...details, ...(formattedCause ? [formattedCause] : [])],
    errors: errors?.map(toError),
  };
}
