import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Router } from "@koa/router";
import test from "ava";
import Koa, { type Context } from "koa";
import { indexExactRoutes, serveRoutes } from "../../../resources/http/exact-routes.ts";

const router = new Router({ sensitive: true, strict: true });
const show = (name: string) => (ctx: unknown) => {
  const { params, _matchedRoute: route } = ctx as Context;
  (ctx as Context).body = { name, params, route };
};
router.get("/items", show("list"));
router.post("/items", show("create"));
router.get("/items/:id", show("one"));
router.get("/items/newest", show("newest"));
const app = new Koa().use(serveRoutes(router, indexExactRoutes(router)));
const server = createServer(app.callback()).listen(0, "127.0.0.1");
await once(server, "listening");
test.after.always(() => server.close());

const ROUTES: [request: string, answer: object | 404][] = [
  ["GET /items", { name: "list", params: {}, route: "/items" }],
  ["GET /items?tag=a", { name: "list", params: {}, route: "/items" }],
  ["POST /items", { name: "create", params: {}, route: "/items" }],
  ["GET /items/1", { name: "one", params: { id: "1" }, route: "/items/:id" }],
  // The router uses the first of several routes that match.
  ["GET /items/newest", { name: "one", params: { id: "newest" }, route: "/items/:id" }],
  ["DELETE /items", 404],
  ["GET /items/", 404],
  ["GET /Items", 404],
  ["GET /item%73", 404],
];

for (const [request, expected] of ROUTES) {
  test(`${request} gets the route that the router would choose`, async (t) => {
    const [method = "", path = ""] = request.split(" ");
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    if (expected === 404) t.is(response.status, 404);
    else t.like(await response.json(), expected);
  });
}

test("HEAD is answered as GET, without a body", async (t) => {
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/items`, { method: "HEAD" });
  t.is(response.status, 200);
  t.is(await response.text(), "");
});
