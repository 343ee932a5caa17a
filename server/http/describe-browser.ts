// In this order: Edge and Opera also call themselves Chrome, and Chrome calls itself Safari.
const BROWSERS: [RegExp, string][] = [
  [/\bEdg(?:A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\/|\bFxiOS\//, "Firefox"],
  [/\bChrom(?:e|ium)\/|\bCriOS\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
// In this order: iPhones also name Mac OS X, and Android names Linux.
const SYSTEMS: [RegExp, string][] = [
  [/\biPhone\b|\biPad\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];
/** What a `User-Agent` is called that names neither a browser nor a program. */
export const UNKNOWN_BROWSER = "Unknown browser";
const PROGRAM = /^[A-Za-z][\w.-]{0,39}/;

/**
 * Describes a `User-Agent` so that its user recognizes it: a browser and its system, or the name of a program. Versions
 * are left out, because they change. The header is only a claim of the client.
 */
export function describeBrowser(userAgent: string): string {
  const browser = nameIn(userAgent, BROWSERS);
  const system = nameIn(userAgent, SYSTEMS);
  if (browser) return system ? `${browser} on ${system}` : browser;
  const [program = UNKNOWN_BROWSER] = PROGRAM.exec(userAgent) ?? [];
  return program === "Mozilla" ? UNKNOWN_BROWSER : program;
}

function nameIn(userAgent: string, names: [RegExp, string][]): string | undefined {
  return names.find(([pattern]) => pattern.test(userAgent))?.[1];
}
