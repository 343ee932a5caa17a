import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import test from "ava";
import Koa, { type Context, type Middleware } from "koa";
import type { FastPath } from "../../../resources/http/api-context.ts";
import { createFront } from "../../../server/http/fast-path.ts";
import { HOST, request, send } from "../../harness/front.ts";

const host = HOST.slice("Host: ".length);

/** Serves middleware at `/path`, and returns the port. */
async function listen(t: { teardown(fn: () => void): void }, listener: RequestListener): Promise<number> {
  const server = createServer({ keepAliveTimeout: 1000, keepAliveTimeoutBuffer: 1 }, listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

const pathOf = (steps: Middleware[]): FastPath => ({ method: "GET", host, path: "/path", steps });
const bytes = request("GET", "/path", HOST, "Accept: text/html", "Content-Type: text/css; charset=latin1");

const RESPONSES: Record<string, (ctx: Context) => unknown> = {
  JSON: (ctx) => {
    ctx.body = { ü: 1 };
  },
  "a status and a body": (ctx) => {
    ctx.status = 201;
    ctx.body = [];
  },
  "a body and a status": (ctx) => {
    ctx.body = {};
    ctx.status = 400;
    ctx.type = "application/problem+json";
  },
  "a page": (ctx) => {
    ctx.body = { error: 1 };
    ctx.body = "<p>ü</p>";
    ctx.type = "html";
  },
  "a header in two spellings": (ctx) => {
    ctx.set("Cache-Control", "no-cache");
    ctx.set("cache-control", "no-store");
    ctx.body = { value: ctx.response.get("Cache-Control") };
  },
  "several headers in one call": (ctx) => {
    ctx.set({ A: "1", B: ["2", "3"] });
    ctx.append("WWW-Authenticate", "Basic");
    ctx.append("www-authenticate", "DPoP");
    ctx.body = {};
  },
  "removed headers": (ctx) => {
    ctx.set("Location", "/");
    ctx.set("X-A", "a");
    ctx.remove("location");
    ctx.remove("Unknown");
    ctx.body = { value: ctx.response.get("Location") };
  },
  "two fields of Vary": (ctx) => {
    ctx.vary("Origin");
    ctx.vary("Accept");
    ctx.body = {};
  },
  "the request": (ctx) => {
    const { method, path, url, ip, host, query, state, headers, href } = ctx;
    const read = { get: ctx.get("ACCEPT"), is: ctx.is("text/*"), accepts: ctx.accepts("json", "html") };
    ctx.body = { method, path, url, ip, host, query, state, headers, href, ...read };
  },
};

for (const [name, respond] of Object.entries(RESPONSES)) {
  test(`a fast path and Koa respond with the same bytes: ${name}`, async (t) => {
    const app = new Koa();
    app.use(respond as Middleware);
    const options = { steps: [], onError: (error: unknown) => t.fail(String(error)) };
    const front = createFront(app, { ...options, paths: [pathOf([respond as Middleware])] });
    const expected = await send(await listen(t, app.callback()), bytes);
    t.is(await send(await listen(t, front), bytes), expected);
  });
}

test("a fast path that fails is reported and closes the connection", async (t) => {
  const failures = {
    "a step": () => Promise.reject(new Error("step")),
    "a body that isn't JSON": async (ctx: Context) => {
      ctx.body = { number: 1n };
    },
    "no body": async () => {},
  };
  for (const [name, step] of Object.entries(failures)) {
    const errors: unknown[] = [];
    const front = createFront(new Koa(), {
      paths: [pathOf([step as Middleware])],
      steps: [],
      onError: (error) => errors.push(error),
    });
    t.is(await send(await listen(t, front), bytes), "", name);
    t.is(errors.length, 1, name);
  }
});
