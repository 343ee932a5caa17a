import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import test from "ava";
import { ROOT, stopPrograms } from "../../harness/program.ts";
import { startOnTerminal, testOnTerminal } from "../../harness/terminal.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-page-"));
test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

/** Starts the server on a terminal, and presses Ctrl-C when it listens. */
async function startOnce(settings: Record<string, string>): Promise<string> {
  const args = ["--import", `${ROOT}server/runtime.js`, `${ROOT}server/main.ts`];
  const own = { DATABASE_URL: `sqlite:${folder}/test.sqlite`, PORT: "0", ...settings };
  const { shown, code } = await startOnTerminal(args, [["linkgate listening on", "\x03"]], own).ended;
  if (code !== 0) throw new Error(shown);
  return shown.replaceAll("\r\n", "\n");
}

testOnTerminal(
  "the first start is a page on a terminal, and further starts say where things run",
  async (t) => {
    const first = await startOnce({});
    t.true(first.includes("\x1b["), "with colors");
    const page = stripVTControlCharacters(first);
    const [, base] = /^linkgate listening on (\S+)$/m.exec(page) ?? [];
    const parts = [
      ["Dashboard", `${base}/dashboard`],
      ["API", `${base}/v1`],
      ["MCP", `${base}/mcp`],
      ["Docs", `${base}/docs`],
      ["Database", `${folder}/test.sqlite`],
    ];
    const positions = [
      ...parts.map(([name = "", place]) => page.indexOf(`\n  ${name.padEnd(9)}  ${place}\n`)),
      ...["\n  client secret  lgs_", "\n  password       ", "\n1. ", "\n2. ", "\n3. "].map((text) =>
        page.indexOf(text),
      ),
      page.indexOf("\nlinkgate listening on"),
    ];
    t.false(positions.includes(-1), page);
    t.deepEqual(
      positions,
      positions.toSorted((a, b) => a - b),
      "in this order",
    );

    const second = await startOnce({
      NO_COLOR: "1",
      LOG_LEVEL: "silent",
      BASE_URL: "https://links.example.com",
    });
    t.false(second.includes("\x1b"));
    t.notRegex(second, /secret|password/);
    for (const [name = ""] of parts) t.regex(second, new RegExp(`^  ${name} `, "m"));
    t.notRegex(page, /Address/, "the base URL is where it listens");
    t.regex(second, /^ {2}Address {4}http:\/\/127\.0\.0\.1:\d+$/m);
    t.is(second.match(/^linkgate listening on /gm)?.length, 1);
  },
);
