import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import pLimit from "p-limit";
import { closeAfterTests } from "./closing.ts";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export type Ending = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

export type ProgramOptions = {
  /** Environment variables. Of this process's own, only PATH and HOME are passed on. */
  settings?: Record<string, string>;
  cwd?: string;
  node?: string;
  /** The user and group that the program runs as, if this process may change them. */
  uid?: number;
};

// Debian Policy 9.2.2: the user with this ID has no permissions.
const UNPRIVILEGED_UID = 65_534;
/** The user of programs that refuse to run as root. */
export const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: UNPRIVILEGED_UID } : {};

const SERVER = `${ROOT}server/`;
// The bundle of the product, if the runner has built one: a program starts in two thirds of the time.
const { TEST_BUNDLE } = process.env;
const running = new Set<Program>();

/** Kills the programs that tests have left running, with their children. */
export function stopPrograms(): void {
  for (const program of running) program.killGroup();
}
// A test file that fails before its first test runs no hooks.
process.once("exit", stopPrograms);

export class Program {
  stdout = "";
  stderr = "";
  readonly ended: Promise<Ending>;
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();

  constructor(command: string, args: string[], { settings = {}, cwd = ROOT, uid }: ProgramOptions = {}) {
    const { PATH, HOME } = process.env;
    const user = uid === undefined ? {} : { uid, gid: uid };
    this.#child = spawn(command, args, { cwd, env: { PATH, HOME, ...settings }, detached: true, ...user });
    if (running.size === 0) closeAfterTests(stopPrograms);
    running.add(this);
    this.#child.stdin?.on("error", () => undefined); // it may end before it reads its input
    this.#child.stdout?.on("data", (chunk) => this.#hear(() => (this.stdout += chunk)));
    this.#child.stderr?.on("data", (chunk) => this.#hear(() => (this.stderr += chunk)));
    this.ended = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (code, signal) => {
        running.delete(this);
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error("the program did not start");
    return this.#child.pid;
  }

  /**
   * Resolves when the lines of the output match. Rejects if the program exits before.
   * The rest of the last line may be on its way, and half an address would match.
   */
  says(pattern: RegExp, stream: "stdout" | "stderr" = "stdout"): Promise<RegExpExecArray> {
    return this.#heard(pattern, () => this[stream].slice(0, this[stream].lastIndexOf("\n") + 1));
  }

  /** As `says`, for text on stderr that no line feed ends: the pattern has to match the character after it. */
  shows(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#heard(pattern, () => this.stderr);
  }

  async #heard(pattern: RegExp, text: () => string): Promise<RegExpExecArray> {
    const heard = Promise.withResolvers<RegExpExecArray>();
    const look = () => {
      const match = pattern.exec(text());
      if (match) heard.resolve(match);
    };
    this.#waiting.add(look);
    look();
    const silence = this.ended.then(({ code, stderr }) => {
      throw new Error(`exited with ${code} before its output matched ${pattern}:\n${this.stdout}${stderr}`);
    });
    return Promise.race([heard.promise, silence]).finally(() => this.#waiting.delete(look));
  }

  write(input: string): void {
    this.#child.stdin?.end(input);
  }

  /** Writes input, and leaves stdin open. */
  type(input: string): void {
    this.#child.stdin?.write(input);
  }

  kill(signal: NodeJS.Signals = "SIGTERM"): void {
    this.#child.kill(signal);
  }

  killGroup(): void {
    try {
      process.kill(-(this.#child.pid ?? Number.NaN), "SIGKILL");
    } catch {
      // It has already exited.
    }
  }

  async stop(): Promise<Ending> {
    this.kill();
    return this.ended;
  }

  #hear(append: () => void) {
    append();
    for (const look of this.#waiting) look();
  }
}

/** Starts a script of the product. It loads the sources on another Node, and where NODE_OPTIONS import one of them. */
function startProduct(script: string, words: string[], options: ProgramOptions): Program {
  const { node = process.execPath, settings, ...others } = options;
  const isBundled = TEST_BUNDLE && node === process.execPath && !settings?.NODE_OPTIONS;
  const bundle = isBundled ? { TEST_BUNDLE } : undefined;
  const imports = [`${SERVER}runtime.js`, ...(bundle ? [`${ROOT}test/runner/load-bundle.ts`] : [])];
  const args = [...imports.flatMap((file) => ["--import", file]), `${SERVER}${script}`, ...words];
  return new Program(node, args, { ...others, settings: { ...bundle, ...settings } });
}

export function startServer(options: ProgramOptions): Program {
  return startProduct("main.ts", [], options);
}

export function startCommand(words: string[], options: ProgramOptions = {}): Program {
  return startProduct("cli/index.ts", words, options);
}

/** The CLI in a shell script. */
export const CLI = `${process.execPath} --import ${SERVER}runtime.js ${SERVER}cli/index.ts`;

/** Resolves to how a server ended that must not start. One that starts is stopped, so its exit code is 0. */
export async function endingOf(server: Program): Promise<Ending> {
  await addressOf(server).catch(() => undefined);
  return server.stop();
}

export async function addressOf(server: Program): Promise<string> {
  const [, address] = await server.says(/^linkgate listening on (\S+)$/m);
  return address as string;
}

// The most commands that a test runs concurrently. More would only wait for the CPU and the database lock.
const limit = pLimit(10);

export function runCommand(words: string[], options: ProgramOptions, input = ""): Promise<Ending> {
  return limit(() => {
    const command = startCommand(words, options);
    command.write(input);
    return command.ended;
  });
}

/** Runs a command of the CLI, and resolves to its JSON document. Throws its error output if it fails. */
export async function resultOf<Result>(words: string[], options: ProgramOptions, input?: string) {
  const { code, stdout, stderr } = await runCommand([...words, "--json"], options, input);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Result;
}

/** Runs a command of the CLI that fails, and resolves to the error that it prints. */
export async function refusalOf(words: string[], options: ProgramOptions, input?: string) {
  const { code, stdout, stderr } = await runCommand([...words, "--json"], options, input);
  const { error, ...others } = JSON.parse(stderr || "{}");
  if (code !== 1 || stdout || Object.keys(others).length > 0)
    throw new Error(`exited with ${code}: ${stdout}${stderr}`);
  return error as { code: string; message: string };
}

/** Finds a Node in PATH that is too old for the product. */
export async function findOlderNode(): Promise<{ file: string; version: string } | undefined> {
  for (const file of (await runShell("which -a node")).stdout.split("\n").filter(Boolean)) {
    const { stdout } = await new Program(file, ["--version"]).ended;
    if (/^v(19|2[01])\./.test(stdout)) return { file, version: stdout.trim() };
  }
  return undefined;
}

/** Runs a program until it exits; returns what it prints. Throws its output if it fails. */
export async function outputOf(command: string, args: string[], options: ProgramOptions = {}) {
  const { code, stdout, stderr } = await new Program(command, args, options).ended;
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} exited with ${code}:\n${stdout}${stderr}`);
  return stdout;
}

export async function runShell(script: string, options: ProgramOptions = {}): Promise<Ending> {
  return new Program("bash", ["-c", script], options).ended;
}

// Its programs, which may write to the folder, are killed before.

const folders: string[] = [];
process.once("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

/** Creates a folder that is removed when the process of the tests ends. */
export function temporaryFolder(name: string): string {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), `linkgate-${name}-`)));
  folders.push(folder);
  return folder;
}

// Below the ephemeral ports (from 32768 on Linux, from 49152 elsewhere): no connection, and no server on port 0, can take
// a free port before the test uses it.
const LOWEST = 10_000;
const HIGHEST = 32_000;

/** Returns a free port, for settings that need a number. */
export async function freePort(): Promise<number> {
  const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return freePort();
  }
  server.close();
  await once(server, "close");
  return port;
}

export async function childrenOf(pid: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid="]);
  const pairs = [...stdout.matchAll(/(\d+) +(\d+)/g)];
  return pairs.filter(([, , parent]) => Number(parent) === pid).map(([, child]) => Number(child));
}
