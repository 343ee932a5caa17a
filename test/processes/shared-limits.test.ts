import http from "node:http";
import test from "ava";
import { bearer } from "../harness/service.ts";
import { startWorkers } from "../harness/workers.ts";

const { url, createOrganization, token, close } = await startWorkers({ RATE_LIMIT: "on" });
test.after.always(close);

/** Sends a request on a new connection. The primary process assigns connections to its workers in turn. */
function send(path: string, headers: Record<string, string>, body?: string): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? "GET" : "POST";
    const request = http.request(new URL(path, url), { agent: false, method, headers }, (response) => {
      response.resume().once("end", () => resolve(response));
    });
    request.once("error", reject).end(body);
  });
}

test.serial("two workers together register ten users per minute for a network", async (t) => {
  const headers = { "content-type": "application/json", accept: "application/json" };
  const statuses = [];
  for (let count = 0; count < 12; count++) {
    const user = { username: `worker-user${count}`, password: "correct horse battery" };
    statuses.push((await send("/auth/register", headers, JSON.stringify(user))).statusCode);
  }
  t.deepEqual(statuses, [...Array(10).fill(201), 429, 429]);
});

test.serial("two workers together limit the guesses at a password", async (t) => {
  const headers = { "content-type": "application/json", accept: "application/json" };
  const guess = JSON.stringify({ username: "grace", password: "guess" });
  const statuses = [];
  for (let count = 0; count < 7; count++)
    statuses.push((await send("/auth/login", headers, guess)).statusCode);
  t.deepEqual(statuses, [401, 401, 401, 401, 401, 429, 429]);
});

test.serial("two workers soon know of each other's calls of an organization", async (t) => {
  const headers = bearer(await token(await createOrganization()));
  let calls = 0;
  let remaining: number;
  // The workers exchange their counts in the background: repeats until one of them has all of them.
  do {
    calls++;
    const { headers: answer } = await send("/v1/organization", headers);
    remaining = Number(/;r=(\d+)/.exec(String(answer.ratelimit))?.[1]);
  } while (calls < 20 || (remaining !== 600 - calls && calls < 600));
  t.true(calls < 600);
});
