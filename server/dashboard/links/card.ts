import type { Card, Link } from "../../../resources/links/types.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { type Html, html } from "../../ui/html.ts";

export type CardValues = Record<"card_title" | "card_description" | "card_image_url", string>;

/** The fields of the form that are the card of a link together. */
export const CARD_FIELDS = {
  card_title: { label: "Card title", write: ({ card }: Link) => card?.title ?? "", keepsSpaces: true },
  card_description: {
    label: "Card description",
    // As browsers normalize the text of a form.
    write: ({ card }: Link) => (card?.description ?? "").replaceAll(/\r\n?/g, "\n"),
    keepsSpaces: true,
  },
  card_image_url: { label: "Card image URL", write: ({ card }: Link) => card?.image_url ?? "" },
} as const;

/**
 * Returns the changed fields with those of the card as one field. Without a title, the card is removed, unless another of
 * its fields was filled in: then the service refuses it, and names the title.
 */
export function mergeCard(changed: Input, shown?: CardValues): Input {
  const { card_title, card_description, card_image_url, ...input } = changed;
  if ([card_title, card_description, card_image_url].every((value) => value === undefined)) return input;
  const title = textFieldOf(card_title ?? shown?.card_title);
  const hasTitle = title.trim() !== "";
  if (!hasTitle && !card_description && !card_image_url) return { ...input, card: null };
  const card = {
    ...(hasTitle && { title }),
    description: textFieldOf(card_description ?? shown?.card_description) || null,
    image_url: textFieldOf(card_image_url ?? shown?.card_image_url) || null,
  };
  return { ...input, card };
}

/** Renders a card on the page of its link. */
export function cardFacts({ title, description, image_url }: Card): Html {
  return html`<dt>Card</dt><dd><bdi>${title}</bdi>${description !== null && html`<br><bdi class="soft">${description}</bdi>`}${
    image_url !== null && html`<br><a class="long" href="${image_url}" rel="noreferrer">${image_url}</a>`
  }</dd>`;
}
