import type { z } from "zod";
import type {
  deliveryPageSchema,
  deliverySchema,
  webhookPageSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from "../../resources/webhooks/schema.ts";
import type { Api } from "./api.ts";

/** A webhook as the API answers it. */
export type WebhookBody = z.output<typeof webhookSchema>;
/** A webhook whose secret is shown. */
export type NewWebhookBody = z.output<typeof webhookWithSecretSchema>;
/** A page of webhooks as the API answers it. */
export type WebhookPage = z.output<typeof webhookPageSchema>;
/** A delivery as the API answers it. */
export type DeliveryBody = z.output<typeof deliverySchema>;
/** A page of deliveries as the API answers it. */
export type DeliveryPage = z.output<typeof deliveryPageSchema>;

const DEADLINE_MS = 30_000;
const LOOK_EVERY_MS = 20;

/** Makes a webhook; the test ends where it cannot. */
export async function createWebhook(
  api: Api,
  url: string,
  events: string[] = ["link.created"],
): Promise<NewWebhookBody> {
  const { status, body, text } = await api.send<NewWebhookBody>("POST", "/v1/webhooks", {
    json: { url, events },
  });
  if (status !== 201) throw new Error(`no webhook: ${status} ${text}`);
  return body;
}

/** The deliveries of a webhook, newest first. */
export async function deliveriesOf(api: Api, { id }: { id: string }): Promise<DeliveryBody[]> {
  return (await api.get<DeliveryPage>(`/v1/webhooks/${id}/deliveries?limit=100`)).body.data;
}

/** Looks at the newest delivery of a webhook until it is as is hoped for. */
export function delivery(
  api: Api,
  webhook: { id: string },
  isHopedFor: (delivery: DeliveryBody) => boolean,
): Promise<DeliveryBody> {
  return until(async () => {
    const [newest] = await deliveriesOf(api, webhook);
    return newest && isHopedFor(newest) ? newest : undefined;
  });
}

/** Asks until there is an answer. */
export async function until<T>(ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error("it never came to pass");
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
