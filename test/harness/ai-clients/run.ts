import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { Browser } from "playwright-core";
import { press, signIn } from "../browser/page-actions.ts";
import { startApp } from "../clients/app-server.ts";
import { ROOT, temporaryFolder } from "../program.ts";
import type { TestOrganization, TestService, TestUser } from "../service.ts";
import { runOnTerminal } from "../terminal.ts";
import type { AiClient, Step } from "./clients.ts";
import type { Installation } from "./install.ts";
import { startModel } from "./model.ts";

type Person = { browser: Browser; service: TestService; user: TestUser; organization: TestOrganization };

const DEADLINE_MS = 200_000;
// Complete only if something else follows.
const PRINTED = /(http:\/\/[\w.:]+\/oauth\/authorize\?[\w.~%&=+-]+)[^\w.~%&=+-]/;

export async function runClient(client: AiClient, { folder }: Installation, person: Person): Promise<string> {
  const { service, organization } = person;
  const home = temporaryFolder("ai-client");
  const work = path.join(home, "work");
  const bin = path.join(home, "bin");
  const refused = Promise.withResolvers<never>();
  refused.promise.catch(() => undefined);
  const deadline = setTimeout(() => refused.reject(new Error("the deadline has passed")), DEADLINE_MS);
  const opened = new Set<string>();
  function allow(url: string): void {
    if (opened.has(url)) return;
    opened.add(url);
    allowInBrowser(person, url).catch(refused.reject);
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

  async function run({ run: command, type = [], until, asks }: Step): Promise<string> {
    const terminal = runOnTerminal(["bash", "-c", command], type, { cwd: work, settings });
    if (asks) model.onAskedEarly = () => terminal.type(`${asks}\r`);
    if (client.prints)
      terminal.says(PRINTED).then(
        ([, url = ""]) => allow(url),
        () => undefined, // it had tokens already
      );
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
    await opener.close();
  }
}

/** Signs in and allows access, in a browser that the user has not used before, up to the page of the program. */
async function allowInBrowser({ browser, service, user }: Person, url: string): Promise<void> {
  const page = await browser.newPage();
  try {
    await page.goto(url);
    await signIn(page, user);
    await press(page, "Allow");
    await page.waitForURL(({ origin }) => origin !== service.url);
  } catch (error) {
    throw new Error(`${error}\nat ${page.url()}: ${await page.textContent("main")}`);
  } finally {
    await page.close();
  }
}

/** Creates the program that opens a URL on Linux, in a folder for the PATH. It hands the URL to `open`. */
async function createOpener(folder: string, open: (url: string) => void) {
  const server = await startApp(async (request, answer) => {
    open((await request.toArray()).join(""));
    answer.end();
  });
  const script = `#!${process.execPath}
fetch("${server.url}", { method: "POST", body: process.argv.at(-1) });
`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "xdg-open"), script, { mode: 0o755 });
  return server;
}
