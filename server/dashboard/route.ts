import type { Router } from "@koa/router";
import type { Cores } from "../../resources/cores.ts";
import type { Parts } from "../parts.ts";
import type { Access } from "./access.ts";
import type { CreateOneTimeView } from "./one-time-view.ts";

/** What the dashboard is made from. */
export type DashboardOptions = Pick<Parts, "settings" | "addresses" | "storage" | "keys"> & {
  cores: Cores;
};

/** Adds the routes of one subject. */
export type Subject = (
  router: Router,
  options: DashboardOptions & { allow: Access; oneTimeView: CreateOneTimeView },
) => void;

/** The address of an organization; whatever belongs to it is below. */
export const ORGANIZATION = "/dashboard/organizations/:id";
