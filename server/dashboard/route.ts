import type { Router } from "@koa/router";
import type { Services } from "../../resources/services.ts";
import type { Dependencies } from "../dependencies.ts";
import type { Access } from "./access.ts";
import type { CreateOneTimeView } from "./one-time-view.ts";

/** The dependencies of the dashboard. */
export type DashboardOptions = Pick<
  Dependencies,
  "settings" | "urls" | "storage" | "clientPolicy" | "keys"
> & {
  services: Services;
};

/** Adds the routes of one feature. */
export type RouteModule = (
  router: Router,
  options: DashboardOptions & { allow: Access; oneTimeView: CreateOneTimeView },
) => void;

/** The path of an organization; everything that belongs to it is below. */
export const ORGANIZATION = "/dashboard/organizations/:id";
