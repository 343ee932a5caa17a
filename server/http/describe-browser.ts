export const UNKNOWN_BROWSER = "Unknown browser";
// In this order: Edge, Opera and others also call themselves Chrome, and Chrome calls itself Safari.
const BROWSERS: [RegExp, string][] = [
  [/\b(?:Headless)?Edg(?:A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\bFirefox\/|\bFxiOS\//, "Firefox"],
  [/\b(?:Headless)?Chrom(?:e|ium)\/|\bCriOS\//, "Chrome"],
  // Safari runs on Apple's systems only. Other browsers with its engine call themselves Safari elsewhere.
  [/^(?=.*\bMac OS X\b).*\bSafari\//, "Safari"],
  [/\bSafari\//, UNKNOWN_BROWSER],
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
const PROGRAM = /^[A-Za-z][\w.-]{0,39}/;

/** Leaves out versions, which change. */
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
