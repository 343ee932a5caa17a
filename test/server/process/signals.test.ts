import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { PRODUCTION } from "../../harness/production.ts";
import { addressOf, type Program, startServer, stopPrograms } from "../../harness/program.ts";

export const stage = "processes";

const folders = mkdtempSync(path.join(tmpdir(), "linkgate-stop-"));
test.after.always(stopPrograms);
test.after.always(() => rmSync(folders, { recursive: true, force: true }));

function startAlone(settings: Record<string, string> = {}): Program {
  return startServer({
    settings: {
      PORT: "0",
      LOG_LEVEL: "silent",
      ...PRODUCTION,
      DATABASE_URL: `sqlite:${mkdtempSync(path.join(folders, "db-"))}/test.sqlite`,
      ...settings,
    },
  });
}

/** Resolves when the port is closed. */
async function closed(url: string): Promise<void> {
  for (;;) {
    const open = await fetch(`${url}/healthz`, { headers: { connection: "close" } }).catch(() => undefined);
    if (!open) return;
    await pause(5);
  }
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal}: a request in flight is answered, new ones are refused, and the exit code is 0`, async (t) => {
    const server = startAlone();
    const url = await addressOf(server);
    const body = "grant_type=client_credentials&client_id=unknown&client_secret=none";
    const agent = new Agent({ keepAlive: true });
    const sent = request(`${url}/oauth/token`, {
      method: "POST",
      agent,
      headers: { "content-type": "application/x-www-form-urlencoded", "content-length": body.length },
    });
    sent.write(body.slice(0, 10));
    await once(sent, "socket");
    t.is((await fetch(`${url}/healthz`)).status, 200, "the server has received the start of the request");

    server.kill(signal);
    await closed(url);
    sent.end(body.slice(10));
    const [answer] = await once(sent, "response");
    t.is(answer.statusCode, 401);
    t.is(answer.headers.connection, "close", "a kept-alive connection doesn't delay the exit");
    answer.resume();
    const { code, stderr } = await server.ended;
    t.is(code, 0);
    t.is(stderr, "");
    agent.destroy();
  });
}

test("signals that arrive together count as one, and an idle connection doesn't delay the exit", async (t) => {
  const server = startAlone();
  const url = await addressOf(server);
  await (await fetch(`${url}/healthz`)).text();
  server.kill("SIGTERM");
  server.kill("SIGINT");
  t.is((await server.ended).code, 0);
});

for (const workers of ["1", "2"]) {
  test(`with WORKERS=${workers}, a second signal ends a shutdown that is still waiting`, async (t) => {
    const server = startAlone({ WORKERS: workers });
    const url = await addressOf(server);
    const upload = connect(Number(new URL(url).port), "127.0.0.1");
    upload.on("error", () => {});
    upload.write("POST /oauth/token HTTP/1.1\r\nContent-Length: 1000\r\n");
    // While it is arriving, the shutdown waits for it.
    const slowly = setInterval(() => upload.write("X-Filler: yes\r\n"), 50);
    t.teardown(() => {
      clearInterval(slowly);
      upload.destroy();
    });
    const ended = server.ended.finally(() => clearInterval(slowly));
    const isOver = Symbol("over");
    do server.kill();
    while ((await Promise.race([ended.then(() => isOver), pause(200)])) !== isOver);
    t.is((await ended).code, 1);
    if (workers === "2") await closed(url);
  });
}

test("during SHUTDOWN_DELAY, /readyz is 503 and requests are answered on connections that close", async (t) => {
  const server = startAlone({ SHUTDOWN_DELAY: "300" });
  const url = await addressOf(server);
  t.is((await fetch(`${url}/readyz`)).status, 200);
  server.kill("SIGTERM");
  // The signal is noticed in its own time.
  while ((await fetch(`${url}/readyz`)).status !== 503) await pause(5);
  const answer = await fetch(`${url}/v1/links`);
  t.is(answer.status, 401);
  t.is(answer.headers.get("connection"), "close");
  t.is((await fetch(`${url}/readyz`)).status, 503);
});

test("without workers, SIGHUP stops the server", async (t) => {
  const server = startAlone();
  await addressOf(server);
  server.kill("SIGHUP");
  const { code, stderr } = await server.ended;
  t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
});
