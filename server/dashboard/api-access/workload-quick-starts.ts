import type { Tokens } from "marked";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { pageReader } from "../../docs/guides.ts";

const QUICK_STARTS = [
  { name: "github-actions", title: "GitHub Actions", note: "Save this as .github/workflows/link.yml." },
  { name: "gitlab-ci", title: "GitLab CI/CD", note: "Add this job to .gitlab-ci.yml." },
  {
    name: "kubernetes",
    title: "Kubernetes",
    note: "Apply this with kubectl. This server must be able to reach the cluster’s issuer.",
  },
];

const readDocument = pageReader("workload-identity.md");

/** Returns the configurations of the documentation, for this server and a client. */
export function workloadQuickStarts({ base, api }: Pick<PublicUrls, "base" | "api">, clientId: string) {
  return QUICK_STARTS.map((quickStart) => {
    const section = readDocument(`${quickStart.title} without a secret`);
    const { text } = section.find(({ type }) => type === "code") as Tokens.Code;
    return {
      ...quickStart,
      code: text
        .replaceAll("https://links.example/v1", () => api)
        .replaceAll("https://links.example", () => base)
        .replaceAll("lgc_…", () => clientId),
    };
  });
}
