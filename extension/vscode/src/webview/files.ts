/** Images and PDFs that are pasted or dropped, and files that are dragged from the editor. */
import { limits } from "../common/messages";
import type { Attachment, Mention } from "../common/view";

const kinds = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];

export async function readAttachment(f: File): Promise<Attachment | string> {
  if (!kinds.includes(f.type)) return `${f.name || "This"} cannot be attached: only PNG, JPEG, GIF and WebP pictures and PDFs can. Mention files with @ instead.`;
  const most = f.type === "application/pdf" ? limits.pdf : limits.image;
  if (f.size > most) return `${f.name || "The picture"} has ${mb(f.size)}; at most ${mb(most)} can be attached. Make it smaller first.`;
  const data = await new Promise<string>((resolve, reject) => {
    const r = new FileReader();
    r.onload = () => resolve(String(r.result).replace(/^[^,]*,/, ""));
    r.onerror = () => reject(r.error ?? new Error("unreadable"));
    r.readAsDataURL(f);
  }).catch(() => undefined);
  if (data === undefined) return `${f.name} could not be read.`;
  return { id: newId(), name: f.name || "pasted picture", mime: f.type, size: f.size, data };
}

function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/** Why an attachment cannot be added to the others. */
export function tooMuch(a: Attachment, others: readonly Attachment[]): string | undefined {
  const total = others.reduce((n, o) => n + o.size, a.size);
  return total > limits.total ? `${a.name} would make ${mb(total)} of attachments; one message carries at most ${mb(limits.total)}. Send it with the next one.` : undefined;
}

function mb(bytes: number): string {
  return `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

/** Files dragged from the explorer or from a tab. */
export function filesOf(data: DataTransfer): Mention[] {
  const list = data.getData("application/vnd.code.uri-list") || data.getData("text/uri-list");
  return list.split(/\r?\n/).filter((l) => l.startsWith("file:") || l.startsWith("vscode-remote:")).slice(0, 50).map((uri) => {
    const path = decoded(uri.replace(/^[a-z-]+:\/\/[^/]*/, "").replace(/[?#].*$/, ""));
    return { kind: "file", label: `@${path.split("/").pop() ?? path}`, uri, path };
  });
}

function decoded(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s; // the name contains a single percent sign
  }
}
