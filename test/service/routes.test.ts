import type { Router } from "@koa/router";
import test from "ava";
import { providerSettings } from "../harness/providers/identity-provider.ts";
import { collectRouters } from "../harness/routers.ts";
import { startTestService } from "../harness/service.ts";

/** Returns the routes that no request reaches, because an earlier route of the router matches the same paths. */
function shadowedRoutes({ stack }: Router): string[] {
  return stack.flatMap((route, index) => {
    // An earlier parameter matches any word, and so that of a later parameter.
    const path = String(route.path).replaceAll(/:\w+/g, "word");
    return stack
      .slice(0, index)
      .filter((earlier) => earlier.match(path) && earlier.methods.some((one) => route.methods.includes(one)))
      .map((earlier) => `${route.methods.at(-1)} ${route.path} is shadowed by ${earlier.path}`);
  });
}

test("every route can be reached", async (t) => {
  const collected = collectRouters();
  await startTestService({
    ...providerSettings("http://localhost:9"),
    SMTP_URL: "smtp://localhost:9",
    SMTP_FROM: "linkgate@example.com",
  });
  const isOf = (part: string) => (router: Router) =>
    router.stack.some(({ path }) => `${path}`.startsWith(part));
  const routers = [...collected];
  for (const part of ["/v1/", "/auth/", "/dashboard/", "/interaction/"])
    t.true(routers.some(isOf(part)), part);
  t.deepEqual(routers.flatMap(shadowedRoutes), []);
});
