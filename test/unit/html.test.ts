import test from "ava";
import { html, trusted } from "../../server/ui/html.ts";

const HOSTILE = `<a href="x" title='y'>&\`=/`;
const ESCAPED = "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;`=/";

test("values are escaped in text, attributes and lists", (t) => {
  t.is(String(html`<p title="${HOSTILE}">${HOSTILE}</p>`), `<p title="${ESCAPED}">${ESCAPED}</p>`);
  t.is(String(html`<p>${["<b>", [HOSTILE]]}</p>`), `<p>&lt;b&gt;${ESCAPED}</p>`);
});

test("an object that looks like HTML is escaped", (t) => {
  t.is(String(html`${{ toString: () => "<b>" }}`), "&lt;b&gt;");
});

test("templates and trusted markup are inserted as they are", (t) => {
  const items = ["a&b", "c"].map((item) => html`<li>${item}</li>`);
  t.is(String(html`<ul>${items}</ul>`), "<ul><li>a&amp;b</li><li>c</li></ul>");
  t.is(String(html`${trusted("<svg></svg>")}${0}${""}`), "<svg></svg>0");
});
