import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { Browser } from "playwright-core";
import { ROOT } from "../program.ts";
import type { TestOrganization, TestService, TestUser } from "../service.ts";
import { runOnTerminal } from "../terminal.ts";
import type { AiClient, Step } from "./clients.ts";
import type { Installation } from "./install.ts";
import { startModel } from "./model.ts";
import { allowInBrowser, createOpener } from "./person.ts";

/** The person at the computer, and the server that the client connects to. */
export type Person = {
  browser: Browser;
  service: TestService;
  user: TestUser;
  organization: TestOrganization;
};

const DEADLINE_MS = 200_000;
// Complete only if something else follows.
const PRINTED = /(http:\/\/[\w.:]+\/oauth\/authorize\?[\w.~%&=+-]+)[^\w.~%&=+-]/;

/** Follows the steps of a client; returns what the tool told the client, or what the terminal showed. */
export async function runClient(client: AiClient, { folder }: Installation, person: Person): Promise<string> {
  const { service, user, organization } = person;
  const home = mkdtempSync(path.join(tmpdir(), "linkgate-ai-client-"));
  const work = path.join(home, "work");
  const bin = path.join(home, "bin");
  const refused = Promise.withResolvers<never>();
  refused.promise.catch(() => undefined);
  const deadline = setTimeout(() => refused.reject(new Error("the deadline has passed")), DEADLINE_MS);
  const opened = new Set<string>();
  /** Opens a URL, which a program may print and open. */
  function allow(url: string): void {
    if (opened.has(url)) return;
    opened.add(url);
    allowInBrowser(person.browser, service, user, url).catch(refused.reject);
  }
  const opener = await createOpener(bin, allow);
  const model = await startModel();
  const { mcp, base: issuer } = service.urls;
  const setting = { mcp, issuer, model: model.url, organization };
  const modules = path.join(folder, "node_modules");
  const settings = {
    HOME: home,
    PATH: [bin, path.join(modules, ".bin"), path.dirname(process.execPath), process.env.PATH].join(":"),
    PROGRAMS: path.join(ROOT, "test/clients/programs"),
    // Without these, some programs don't open a browser.
    DISPLAY: ":0",
    BROWSER: "xdg-open",
    COLORTERM: "truecolor",
    COLUMNS: "120",
    // A program may show nothing while it works.
    SILENCE: "120",
    ...client.environment?.(setting),
  };

  /** Runs a command; returns what the terminal showed. */
  async function run({ run: command, type = [], until, asks }: Step): Promise<string> {
    const terminal = runOnTerminal(["bash", "-c", command], type, { cwd: work, settings });
    if (asks) model.onAskedEarly = () => terminal.type(`${asks}\r`);
    if (client.prints) {
      terminal.says(PRINTED).then(
        ([, url = ""]) => allow(url),
        () => undefined, // it had tokens already
      );
    }
    const reached = asks ? model.called : until && terminal.says(until);
    let failure: unknown;
    try {
      const ending = await Promise.race([refused.promise, terminal.ended, ...(reached ? [reached] : [])]);
      if (ending && "code" in ending && (reached || ending.code !== 0))
        failure = `exited with ${ending.code}`;
    } catch (error) {
      failure = error;
    }
    const { shown } = await terminal.stop();
    const text = stripVTControlCharacters(shown);
    if (failure) throw new Error(`${command}: ${failure}\n${text}`);
    return text;
  }

  try {
    mkdirSync(work);
    symlinkSync(modules, path.join(work, "node_modules"));
    for (const [name, text] of Object.entries(client.files?.(setting) ?? {})) {
      mkdirSync(path.dirname(path.join(home, name)), { recursive: true });
      writeFileSync(path.join(home, name), text);
    }
    let shown = "";
    for (const step of client.steps(setting))
      shown = await run(typeof step === "string" ? { run: step } : step);
    return model.result || shown;
  } finally {
    clearTimeout(deadline);
    opener.close();
    model.close();
    rmSync(home, { recursive: true, force: true });
  }
}
