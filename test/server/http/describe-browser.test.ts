import test from "ava";
import { describeBrowser } from "../../../server/http/describe-browser.ts";

const AGENTS: [userAgent: string, description: string][] = [
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0",
    "Edge on Windows",
  ],
  [
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36",
    "Chrome on Android",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
    "Safari on iOS",
  ],
  ["curl/8.14.1", "curl"],
  ["python-requests/2.32", "python-requests"],
  ["Mozilla/5.0 (compatible)", "Unknown browser"],
  ["<script>alert(1)</script>", "Unknown browser"],
  ["", "Unknown browser"],
];

test("a user agent is described by its browser and system, or by the name of its program", (t) => {
  for (const [userAgent, description] of AGENTS) t.is(describeBrowser(userAgent), description);
  t.true(describeBrowser("x".repeat(10_000)).length <= 100);
});
