import { z } from "zod";
import type { PlanChange } from "../../adapters/organizations/store.ts";
import { found, notFound } from "../../resources/http/problem.ts";
import { disabledToJson, planChangeToJson } from "../clients/client-view.ts";
import { nameSchema } from "../credentials/names.ts";
import { clientToJson } from "./client.ts";
import { forOperator } from "./operation.ts";
import { planSchema } from "./organizations.ts";
import { reasonOption, reasonSchema } from "./schemas.ts";

export const createOrganizationOnPlan = forOperator({
  on: "nothing",
  summary: "Create an organization",
  description: "On a paid plan, this creates its OAuth client, too.",
  input: z.strictObject({ name: nameSchema, plan: planSchema.default("free") }),
  events: ["organization.created", "client.created"],
  command: {
    name: "org create",
    arguments: { name: "1 to 100 characters" },
    options: { plan: { syntax: "--plan <plan>", text: "free, growth or premium (default: free)" } },
    example: "Acme --plan growth",
  },
  async run({ storage, actor, input: { name, plan }, beforeCommit }) {
    const handOver = { beforeCommit: (created: PlanChange) => beforeCommit(planChangeToJson(created)) };
    return planChangeToJson(await storage.organizations.create(name, plan, actor, undefined, handOver));
  },
});

export const listAllOrganizations = forOperator({
  on: "nothing",
  summary: "List the organizations",
  command: { name: "org list" },
  run: async ({ storage }) => ({ organizations: await storage.organizations.list() }),
});

export const resumeOrganization = forOperator({
  on: "organization",
  summary: "Resume a suspended organization",
  description: "Its tokens, apps, links and webhooks work again.",
  events: ["organization.resumed"],
  command: { name: "org resume" },
  async run({ storage, actor, organization }) {
    if (!(await storage.suspensions.resume(organization.id, actor))) throw notFound("organization");
    return { organization, suspended: null };
  },
});

export const showOrganization = forOperator({
  on: "organization",
  summary: "Show an organization and its OAuth client",
  command: { name: "org show" },
  async run({ storage, organization }) {
    const [client, suspension] = await Promise.all([
      storage.clients.findByOrganization(organization.id),
      storage.suspensions.find(organization.id),
    ]);
    return {
      organization,
      ...(suspension && { suspended: disabledToJson(suspension) }),
      ...(client && { client: clientToJson(client) }),
    };
  },
});

export const suspendOrganization = forOperator({
  on: "organization",
  summary: "Suspend an organization",
  description: "Stops its tokens, apps, links and webhooks; its members can only view it.",
  input: z.strictObject({ reason: reasonSchema }),
  events: ["organization.suspended"],
  command: {
    name: "org suspend",
    options: { reason: reasonOption("its members") },
    example: '--reason "Phishing links"',
  },
  async run({ storage, actor, organization, input: { reason } }) {
    const suspension = await storage.suspensions.suspend(organization.id, reason, actor);
    return { organization, suspended: disabledToJson(found(suspension, "organization")) };
  },
});
