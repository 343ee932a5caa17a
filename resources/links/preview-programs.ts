// Names of programs that fetch a link to show it in a chat, a post or a document, in lower case. Search engines, archives
// and AI crawlers aren't among them. iMessage sends the names of Facebook and X.
const NAMES =
  `facebookexternalhit, facebot, twitterbot, linkedinbot, pinterestbot, redditbot, discordbot, telegrambot, \
slackbot-linkexpanding, skypeuripreview, microsoftpreview, mattermost-bot, mastodon/, bluesky cardyb, summalybot, lemmy/, \
vkshare, odklbot, line-poker, kakaotalk-scrap, snap url preview service, google-pagerenderer, synapse (bot, beeperbot, \
developers.google.com/+/web/snippet, zulipurlpreview, chatwork linkpreview, yahoo link preview, iframely, embedly, \
nextcloud-server-crawler, nextcloud server crawler`.split(", ");
// The browsers in these apps have the name further on. Signal sends that of WhatsApp.
const FIRST_NAMES = ["whatsapp", "viber", "pinterest/", "notion"];

/** Returns whether a user agent is that of a program that shows previews of links. */
export function isPreviewProgram(userAgent: string): boolean {
  const text = userAgent.toLowerCase();
  return FIRST_NAMES.some((name) => text.startsWith(name)) || NAMES.some((name) => text.includes(name));
}
