import type { ClientOptions, ErrorCode, Linkgate, WebhookEvent } from "@linkgate/client";
import { createClient, LinkgateError, verifyWebhook } from "@linkgate/client";

/** A delivery to a webhook, as a test passes it to the program. */
type Delivery = { body: string; headers: Record<string, string>; secret: string };

/** Uses each part of the client once. Runs in Node.js and in browsers. */
export async function walk(options: ClientOptions, { body, headers, secret }: Delivery) {
  const linkgate = createClient(options);
  const { results } = await linkgate.createLinks({
    links: [{ url: "https://example.com/a" }, { url: "https://example.com/b", tags: ["walk"] }],
  });
  const created = results.map(({ link }) => link?.url);
  const listed: string[] = [];
  for await (const { url } of linkgate.listLinks({ limit: 1 })) listed.push(url);
  const code = await linkgate.createLink({ url: "none" }).then(() => undefined, toCode);
  const aborted = await linkgate
    .getOrganization({}, { signal: AbortSignal.abort(new Error("aborted")) })
    .catch((error: Error) => error.message);
  const event = await verifyWebhook(body, headers, secret);
  return { created, listed, code, aborted, event: event.type };
}

function toCode(error: unknown): ErrorCode {
  if (error instanceof LinkgateError) return error.code;
  throw error;
}

/** The types accept what the API does. */
export async function accepted(linkgate: Linkgate, event: WebhookEvent): Promise<unknown[]> {
  if (event.type === "link.clicked") return [event.data.link_id];
  return [
    (await linkgate.createLink({ url: "https://example.com/", expires_at: null })).short_url.length,
    (await linkgate.listLinks()).next_cursor?.length,
    (await linkgate.updateLink({ id: "lnk_1", title: null }, { ifMatch: '"1"' })).title?.length,
    (await linkgate.createWebhook({ url: "https://example.com/", events: ["link.created"] })).secret.length,
    await linkgate.deleteWebhook({ id: "whk_1" }),
  ];
}
