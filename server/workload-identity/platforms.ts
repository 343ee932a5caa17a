import type { NewTrustRule } from "../../adapters/organizations/trust-rules.ts";

/** A field in the words of a platform. A value must match the pattern, or be one of the options. */
export type PlatformField = {
  label: string;
  hint?: string;
  placeholder?: string;
  /** What the form starts with. */
  initial?: string;
  isOptional?: boolean;
} & ({ pattern: RegExp; message: string } | { options: Record<string, string> });

type Input = Record<string, unknown>;
type Composed = Pick<NewTrustRule, "issuer" | "subject" | "claims">;

/** A platform whose users know neither issuers nor subjects: a rule is composed from what they know. */
export type Platform = {
  /** As in the heading of its quick start in `docs/workload-identity.md`. */
  name: string;
  /** What to do with its quick start. */
  note: string;
  /** By the name of the value. */
  fields: Record<string, PlatformField>;
  /** Reads values in another form that the platform shows. */
  prepare?: (input: Input) => Input;
  /** `refuse` reports a value that doesn't fit the others. */
  compose(values: Record<string, string>, refuse: (field: string, message: string) => void): Composed;
};

const REF_MESSAGE =
  "must be a name as in git, without refs/heads/ or refs/tags/; a * at the end matches anything";
const REF = /^(?!refs\/)[^\s:*?~^\\[]*\*?$/;
const ID = { pattern: /^\d{1,20}$/, message: "must be a number" };

const REF_KINDS = { branch: "heads", tag: "tags" } as Record<string, string>;

const OWNER_MESSAGE = "must be the name of a user or organization on GitHub";
const GITHUB_PATH = /^(?:https:\/\/github\.com\/)?([^/\s]+)\/([^/\s]+?)(?:\.git)?\/?$/i;

const GITHUB: Platform = {
  name: "GitHub Actions",
  note: "Save this as .github/workflows/create-link.yaml.",
  prepare(input) {
    const [, owner = "", repository] = GITHUB_PATH.exec(String(input.repository).trim()) ?? [];
    const typed = String(input.owner ?? "").trim();
    const isSame = typed === "" || typed.toLowerCase() === owner.toLowerCase();
    return repository && isSame ? { ...input, owner: typed || owner, repository } : input;
  },
  fields: {
    owner: {
      label: "Owner",
      placeholder: "octo-org",
      hint: "The user or organization, as GitHub spells it.",
      isOptional: true,
      pattern: /^[A-Za-z0-9][A-Za-z0-9_-]{0,38}$/,
      message: OWNER_MESSAGE,
    },
    repository: {
      label: "Repository",
      placeholder: "octo-repo",
      hint: "The name. You can also paste “owner/repository” or the URL on GitHub.",
      pattern: /^[\w.-]{1,100}$/,
      message: "must be the name of a repository, without its owner",
    },
    jobs: {
      label: "Jobs",
      hint: "A job in an environment counts for its environment only, not for its branch.",
      options: {
        branch: "On a branch",
        tag: "On a tag",
        environment: "In an environment",
        pull_request: "Of pull requests",
        any: "Any job of the repository, including those of pull requests",
      },
    },
    ref: {
      label: "Name of the branch, tag or environment",
      placeholder: "main",
      isOptional: true,
      pattern: /^[^\r\n*]*\*?$/,
      message: "must be one line, with a * at the end only",
    },
    subject_format: {
      label: "Identifiers in tokens",
      hint: "Repositories that were created or renamed since July 15, 2026 have IDs; others can opt in.",
      options: { names: "Names only", ids: "Names and IDs" },
    },
    owner_id: {
      label: "Owner ID (optional with names only)",
      placeholder: "65",
      hint: "Names can be taken over after a rename, IDs can’t. “gh api repos/OWNER/REPOSITORY --jq .owner.id” prints it.",
      isOptional: true,
      ...ID,
    },
    repository_id: {
      label: "Repository ID (optional with names only)",
      placeholder: "74",
      hint: "“gh api repos/OWNER/REPOSITORY --jq .id” prints it.",
      isOptional: true,
      ...ID,
    },
  },
  compose(
    { owner, repository, jobs = "", ref = "", subject_format, owner_id = "", repository_id = "" },
    refuse,
  ) {
    if (!owner) refuse("owner", OWNER_MESSAGE);
    const hasIds = subject_format === "ids";
    if (hasIds && !owner_id) refuse("owner_id", REQUIRED_ID);
    if (hasIds && !repository_id) refuse("repository_id", REQUIRED_ID);
    const names = hasIds ? `${owner}@${owner_id}/${repository}@${repository_id}` : `${owner}/${repository}`;
    const claims = {
      ...(!hasIds && owner_id && { repository_owner_id: owner_id }),
      ...(!hasIds && repository_id && { repository_id }),
    };
    const subject = `repo:${names}:${jobsOf(jobs, ref, refuse)}`;
    return { issuer: "https://token.actions.githubusercontent.com", subject, claims };
  },
};

const REQUIRED_ID = "is required if tokens have IDs";

/** https://docs.github.com/en/actions/reference/security/oidc: what follows the repository in a subject. */
function jobsOf(jobs: string, ref: string, refuse: (field: string, message: string) => void): string {
  if (jobs === "any" || jobs === "pull_request") {
    if (ref) refuse("ref", "must be empty for pull requests and any job");
    return jobs === "any" ? "*" : jobs;
  }
  if (!ref) refuse("ref", `must be the name of ${jobs === "environment" ? "an" : "a"} ${jobs}`);
  // A colon separates the parts of a subject.
  if (jobs === "environment") return `environment:${ref.replaceAll(":", "%3A")}`;
  if (!REF.test(ref)) refuse("ref", REF_MESSAGE);
  return `ref:refs/${REF_KINDS[jobs]}/${ref}`;
}

const GITLAB: Platform = {
  name: "GitLab CI/CD",
  note: "Add this job to .gitlab-ci.yml.",
  fields: {
    issuer: {
      label: "GitLab URL",
      initial: "https://gitlab.com",
      hint: "For GitLab Self-Managed, the URL of your instance.",
      pattern: /./,
      message: "must be an https URL",
    },
    project: {
      label: "Project",
      placeholder: "my-group/my-project",
      hint: "With its groups, as in the address of the project.",
      pattern: /^(?=.{3,150}$)[\w.-]+(\/[\w.-]+)+$/,
      message: "must be a group and a project, such as my-group/my-project",
    },
    jobs: {
      label: "Jobs",
      options: { branch: "On a branch", tag: "On a tag", any: "Any job of the project" },
    },
    ref: {
      label: "Name of the branch or tag",
      placeholder: "main",
      isOptional: true,
      pattern: REF,
      message: REF_MESSAGE,
    },
    protected: { label: "Branches and tags", options: { true: "Only protected ones", false: "Any" } },
    project_id: {
      label: "Project ID (optional)",
      placeholder: "20",
      hint: "Paths can be taken over after a rename, IDs can’t.",
      isOptional: true,
      ...ID,
    },
  },
  compose({ issuer = "", project, jobs, ref, protected: isProtected, project_id }, refuse) {
    if (jobs === "any" && ref) refuse("ref", "must be empty for any job");
    if (jobs !== "any" && !ref) refuse("ref", `must be the name of a ${jobs}`);
    const claims = {
      ...(isProtected === "true" && { ref_protected: "true" }),
      ...(project_id && { project_id }),
    };
    const subject = `project_path:${project}:${jobs === "any" ? "*" : `ref_type:${jobs}:ref:${ref}`}`;
    return { issuer, subject, claims };
  },
};

const KUBERNETES_NAME = {
  pattern: /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/,
  message: "must be a name as in Kubernetes: lower-case letters, digits and hyphens",
};

const KUBERNETES: Platform = {
  name: "Kubernetes",
  note: "Apply this with kubectl. This server must be able to reach the cluster’s issuer.",
  fields: {
    issuer: {
      label: "Issuer",
      placeholder: "https://",
      hint: "“kubectl get --raw /.well-known/openid-configuration” prints it.",
      pattern: /./,
      message: "must be an https URL",
    },
    namespace: { label: "Namespace", placeholder: "my-namespace", ...KUBERNETES_NAME },
    service_account: { label: "Service account", placeholder: "my-service-account", ...KUBERNETES_NAME },
  },
  compose({ issuer = "", namespace, service_account }) {
    return { issuer, subject: `system:serviceaccount:${namespace}:${service_account}`, claims: {} };
  },
};

export const PLATFORMS: Record<string, Platform> = { github: GITHUB, gitlab: GITLAB, kubernetes: KUBERNETES };
