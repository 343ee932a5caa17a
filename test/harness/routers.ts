import { Router } from "@koa/router";

let routers = new Set<Router>();
const { routes } = Router.prototype;
Router.prototype.routes = function collectRouter(this: Router) {
  routers.add(this);
  return routes.call(this);
};

/** Returns a set that the routers of the applications that are created from now on are added to. */
export function collectRouters(): ReadonlySet<Router> {
  routers = new Set();
  return routers;
}
