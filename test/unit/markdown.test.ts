import test from "ava";
import { parse } from "node-html-parser";
import { renderMarkdown, sectionsOf } from "../../server/docs/markdown.ts";

const render = (markdown: string) => parse(renderMarkdown(markdown).body.toString());

const HOSTILE = [
  ...["<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b", "<!-- comment -->", "# <b>title</b>"],
  ...["## <b>title</b>", "| <b>a</b> |\n|---|\n| <i>b</i> |", "- <style>*{}</style>", "`<b>`"],
  ...["```html\n<b></b>\n```", '```html title="<b>"\n<b></b>\n```', "[<b>x</b>](https://example.com)"],
  '![" onerror="alert(1)](/docs/images/x.png)',
];

test("HTML is escaped wherever it stands", (t) => {
  for (const markdown of HOSTILE) {
    const html = render(markdown);
    t.is(html.querySelectorAll("script, style, b, i, [onerror]").length, 0, markdown);
    t.notRegex(html.toString(), /<!--/, markdown);
  }
});

test("a comment isn't shown, unless it is code", (t) => {
  t.is(render("before\n\n<!-- results -->\n\nafter").text.trim().replaceAll(/\s+/g, " "), "before after");
  t.regex(render("<!-- a --> <script>b()</script>").text, /script/);
  t.regex(render("`<!-- shown -->`").text, /<!-- shown -->/);
});

const SCRIPTS = [
  ...["javascript:alert(1)", "JavaScript:alert(1)", "java&#10;script:alert(1)", "&#x6A;avascript:alert(1)"],
  ...["<java\tscript:alert(1)>", "data:text/html,<script>", "vbscript:x", "file:///etc/passwd"],
  "blob:https://example.com/x",
];
const KEPT = ["https://example.com/?a=1", "http://example.com", "mailto:a@example.com", "/docs", "#x"];

test("a link to another scheme than http, https and mailto is plain text", (t) => {
  for (const target of SCRIPTS) {
    const html = render(`[label](${target}) and ![image](${target})`);
    t.is(html.querySelectorAll("a, img").length, 0, target);
    t.true(html.text.includes("label"), target);
  }
  for (const target of KEPT)
    t.is(render(`[label](${target})`).querySelector("a")?.getAttribute("href"), target);
});

test("an image of another origin isn't loaded", (t) => {
  t.is(render("![x](https://example.com/x.png) ![y](//example.com/y.png)").querySelectorAll("img").length, 0);
});

test("consecutive code blocks with a title are tabs", (t) => {
  const block = (title: string) => `\`\`\`sh title="${title}"\n${title}\n\`\`\``;
  const inList = `- in a list\n\n  ${block("two").replaceAll("\n", "\n  ")}`;
  const html = render([block("curl"), block("Python"), "text", block("one"), inList].join("\n\n"));
  const [tabs, ...others] = html.querySelectorAll(".switch");
  const labels = tabs?.querySelectorAll("label").map(({ text }) => text);
  t.deepEqual(labels, ["curl", "Python"]);
  t.is(tabs?.querySelectorAll("input[checked]").length, 1);
  t.deepEqual(others, [], "a block by itself has no tabs");
  t.is(html.querySelectorAll("pre").length, 4);
});

test("headings have the anchors of GitHub, also if they repeat", (t) => {
  const page = "# Page\n\n## Scopes\n\n### `GET /v1`: a, b\n\n## Scopes\n\n## FAPI 2.0";
  const ids = renderMarkdown(page).sections.map(({ id }) => id);
  t.deepEqual(ids, ["", "scopes", "get-v1-a-b", "scopes-1", "fapi-20"]);
});

test("the text for the search reads as a text: cells of tables are kept apart, and tabs named", (t) => {
  const table = "| Code | Meaning |\n|---|---|\n| `a` | first |\n| `b` | second |";
  const tabs = ["curl", "Python"].map((title) => `\`\`\`sh title="${title}"\nrun\n\`\`\``);
  const texts = sectionsOf(
    ["# A table", table, "Send `Bearer <a>`, [as here](#x).", "## Tabs", ...tabs].join("\n\n"),
  ).map(({ text }) => text.trim().replaceAll(/\s+/g, " "));
  t.deepEqual(texts, ["a · first; b · second Send Bearer a, as here.", "run curl Python"]);
});
