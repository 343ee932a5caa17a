import { type Api, apiAt } from "../clients/api.ts";
import type { Receiver } from "../receiver.ts";
import type { TestService } from "../service.ts";
import { createWebhook } from "../webhooks.ts";
import { createKnownObjects, type KnownObjects } from "./known-objects.ts";

/** A new organization that has objects of each kind. */
export type Prepared = { token: string; api: Api; known: KnownObjects };

/** Returns a function that creates an organization, with links, a verified webhook, a delivery, and deleted ones. */
export async function prepareObjects(
  service: TestService,
  receiver: Receiver,
): Promise<() => Promise<Prepared>> {
  const foreign = apiAt(service.url, await service.token(await service.createOrganization()));
  const constants = {
    receiver: receiver.url("/fuzz"),
    foreign_link: (await foreign.createLink()).id,
    foreign_webhook: (await createWebhook(foreign, receiver.url("/foreign"))).id,
  };
  let runs = 0;

  return async () => {
    const organization = await service.createOrganization();
    const token = await service.token(organization);
    const reader = await service.token(organization, { scope: "links:read" });
    const api = apiAt(service.url, token);
    const known = createKnownObjects({ ...constants, reader, run: `run${++runs}` });
    const change = async (method: string, path: string, json?: unknown) =>
      known.add((await api.send(method, known.resolve(path), { json })).text);
    for (const [path, external_id] of [
      ["/first", "x"],
      ["/second", "y/z"],
    ] as const) {
      known.add(JSON.stringify({ id: (await createWebhook(api, receiver.url(path))).id }));
      await change("POST", "/v1/links", { url: "https://example.com/", external_id });
    }
    await change("POST", "/v1/webhooks/<webhook 0>/test");
    await change("POST", "/v1/webhooks/<webhook 1>/test");
    await change("POST", "/v1/links", { url: "https://example.com/" });
    await change("POST", "/v1/webhooks", { url: receiver.url("/third"), events: ["webhook.test"] });
    for (const object of ["links/<link 2>", "webhooks/<webhook 2>"]) {
      const address = known.resolve(object);
      await api.send("DELETE", `/v1/${address}`);
      known.remove(address.split("/")[1] as string);
    }
    return { token, api, known };
  };
}
