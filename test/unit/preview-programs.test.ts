import test from "ava";
import { isPreviewProgram } from "../../resources/links/redirect.ts";

const CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0";
const WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)";
const MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)";
const IPHONE =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
const ANDROID = `Mozilla/5.0 (Linux; Android 15; Pixel 9 Build/AP4A; wv) ${CHROME.replace("Chrome", "Version/4.0 Chrome")} Mobile Safari/537.36`;

const PREVIEW_PROGRAMS = {
  Facebook: "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
  "Facebook, older": "Facebot/1.0",
  X: "Twitterbot/1.0",
  LinkedIn: "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
  Slack: "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
  Discord: "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
  Telegram: "TelegramBot (like TwitterBot)",
  "WhatsApp on Android": "WhatsApp/2.23.20.0 A",
  "Teams and Skype":
    "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com",
  Microsoft:
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; MicrosoftPreview/2.0; +https://aka.ms/MicrosoftPreview) Chrome/112.0.0.0 Safari/537.36",
  Pinterest: "Mozilla/5.0 (compatible; Pinterestbot/1.0; +http://www.pinterest.com/bot.html)",
  "Pinterest, older": "Pinterest/0.2 (+http://www.pinterest.com/bot.html)",
  Reddit: "Mozilla/5.0 (compatible; redditbot/1.0; +http://www.reddit.com/feedback)",
  Mastodon: "Mastodon/4.3.0 (http.rb/5.2.0; +https://mastodon.social/)",
  Misskey: "Mozilla/5.0 (compatible; SummalyBot/5.1.0)",
  Lemmy: "Lemmy/0.19.8; +https://leminal.space",
  Bluesky: "Mozilla/5.0 (compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app)",
  Atlassian: "Iframely/1.3.1 (+https://iframely.com/docs/about) Atlassian",
  Embedly: "Mozilla/5.0 (compatible; Embedly/0.2; +http://support.embed.ly/)",
  "Viber on iOS": "Viber/20.9.0.8 CFNetwork/1410.0.3 Darwin/22.6.0",
  Snapchat: "Snap URL Preview Service; bot; snapchat; https://developers.snap.com/robots",
  VK: "Mozilla/5.0 (compatible; vkShare; +http://vk.com/dev/Share)",
  Odnoklassniki: "Mozilla/5.0 (compatible; OdklBot/1.0 like Linux; klass@odnoklassniki.ru)",
  "Google Chat":
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/56.0.2924.87 Safari/537.36 Google-PageRenderer Google (+https://developers.google.com/+/web/snippet/)",
  "Google, older": "Mozilla/5.0 (X11; Linux x86_64) Google (+https://developers.google.com/+/web/snippet/)",
  iMessage: `${MAC} AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0`,
  Matrix: "Synapse (bot; +https://github.com/matrix-org/synapse)",
  Beeper: "BeeperBot/0 Matrix-Media-Repo/1",
  Notion: "Notion/1.0 (https://notion.so; team@makenotion.com)",
  Nextcloud: "Nextcloud-Server-Crawler/33.0.1",
  "Nextcloud, older": "Nextcloud Server Crawler",
  Mattermost: "Mattermost-Bot/1.1",
  Zulip: "Mozilla/5.0 (compatible; ZulipURLPreview/10.3; +https://chat.zulip.org)",
  Chatwork: "Chatwork LinkPreview v1",
  "Yahoo Mail":
    "Mozilla/5.0 (compatible; Yahoo Link Preview; https://help.yahoo.com/kb/mail/yahoo-link-preview-SLN23615.html)",
};

const OTHERS = {
  none: "",
  Chrome: `${WINDOWS} ${CHROME} Safari/537.36`,
  "Safari on a phone": `${IPHONE} Version/18.0 Mobile/15E148 Safari/604.1`,
  "the browser in Facebook": `${IPHONE} Mobile/15E148 [FBAN/FBIOS;FBAV/440.0.0.31.105;FBDV/iPhone14,7]`,
  "the browser in LinkedIn": `${IPHONE} Mobile/15E148 [LinkedInApp]/9.29.8962`,
  "the browser in Pinterest": `${ANDROID} [Pinterest/Android]`,
  "the browser in Viber": `${ANDROID} Viber/22.6.0.4`,
  "the browser in WhatsApp": `${WINDOWS} ${CHROME} Safari/537.36 WhatsApp/2.2146.9`,
  "the app of Slack": `${WINDOWS} AppleWebKit/537.36 Slack/4.41.98 Chrome/130.0.0.0 Electron/33.0.1 Safari/537.36`,
  "the app of Discord": `${WINDOWS} AppleWebKit/537.36 discord/1.0.9168 Chrome/128.0.0.0 Electron/32.0.0 Safari/537.36`,
  "the app of Notion": `${MAC} AppleWebKit/537.36 Notion/4.2.0 Chrome/130.0.0.0 Electron/33.2.1 Safari/537.36`,
  "Slack's other bot": "Slackbot 1.0 (+https://api.slack.com/robots)",
  Google: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
  "Bing's images of pages": `${WINDOWS} AppleWebKit/534+ (KHTML, like Gecko) BingPreview/1.0b`,
  "Meta's training":
    "meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)",
  "the Internet Archive":
    "Mozilla/5.0 (compatible; archive.org_bot +http://www.archive.org/details/archive.org_bot)",
  curl: "curl/8.5.0",
};

test("programs that show previews of links are recognized by their user agents", (t) => {
  for (const [name, userAgent] of Object.entries(PREVIEW_PROGRAMS)) t.true(isPreviewProgram(userAgent), name);
});

test("browsers, also those in apps, search engines, archives and AI crawlers aren't preview programs", (t) => {
  for (const [name, userAgent] of Object.entries(OTHERS)) t.false(isPreviewProgram(userAgent), name);
});
