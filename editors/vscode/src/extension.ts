/** A client of `npumigrate server`: findings, fixes and hovers are the server's; three commands and a lens are here. */

import * as vscode from "vscode";
import { LanguageClient, TransportKind } from "vscode-languageclient/node";

/** The documents that commands of this extension make: a preview of a migration, an explained rule. */
const SCHEME = "npumigrate";
const LANGUAGES = [
  "python",
  "shellscript",
  "yaml",
  "dockercompose",
  "dockerfile",
  "makefile",
  "json",
  "jsonc",
  "toml",
  "ini",
  "dotenv",
  "pip-requirements",
];

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const made = new Made();
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, made),
    vscode.commands.registerCommand("npumigrate.restart", restart),
    vscode.commands.registerCommand("npumigrate.preview", () => preview(made)),
    vscode.commands.registerCommand("npumigrate.explainRule", () => explainRule(made)),
    vscode.languages.registerCodeLensProvider({ language: "python" }, new Lenses()),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("npumigrate.path")) {
        await restart();
      } else if (event.affectsConfiguration("npumigrate")) {
        await client?.sendNotification("workspace/didChangeConfiguration", {
          settings: { npumigrate: settings() },
        });
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  const leaving = client;
  client = undefined;
  if (leaving?.isRunning()) {
    await leaving.stop();
  }
}

async function start(): Promise<void> {
  const server = { command: command(), args: ["server"], transport: TransportKind.stdio };
  client = new LanguageClient("npumigrate", "npumigrate", server, {
    documentSelector: [
      ...LANGUAGES.map((language) => ({ scheme: "file", language })),
      { scheme: "untitled", language: "python" },
      { scheme: "file", pattern: "**/*{requirement,constraint}*.{txt,in}" },
    ],
    initializationOptions: settings(),
  });
  try {
    await client.start();
  } catch (error) {
    const said = "npumigrate: {0} server cannot be started. Install npumigrate with its extra server, or set npumigrate.path.";
    const chosen = await vscode.window.showErrorMessage(vscode.l10n.t(said, command()), vscode.l10n.t("Open Settings"));
    if (chosen) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "npumigrate.path");
    }
  }
}

async function restart(): Promise<void> {
  await deactivate();
  await start();
}

function command(): string {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const path = vscode.workspace.getConfiguration("npumigrate").get<string>("path") || "npumigrate";
  return path.replaceAll("${workspaceFolder}", folder);
}

/** The settings under the server's names; what is empty is left to the project's own configuration. */
function settings(): Record<string, unknown> {
  const given = vscode.workspace.getConfiguration("npumigrate");
  const version = given.get<string>("version");
  const rules = given.get<string[]>("rules") ?? [];
  return { ...(version ? { version } : {}), ...(rules.length ? { rules } : {}) };
}

/** Show a file beside what all fixes, the unsafe ones too, make of it. */
async function preview(made: Made): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (!document) {
    return;
  }
  const text = await ask("npumigrate.server.migrated", document.uri.toString());
  if (typeof text !== "string") {
    void vscode.window.showInformationMessage(vscode.l10n.t("npumigrate: this file is not checked, or does not parse."));
    return;
  }
  if (text === document.getText()) {
    void vscode.window.showInformationMessage(vscode.l10n.t("npumigrate: nothing to change in this file."));
    return;
  }
  const migrated = made.keep(document.uri.path, text);
  const name = document.uri.path.split("/").pop();
  await vscode.commands.executeCommand("vscode.diff", document.uri, migrated, vscode.l10n.t("{0}: original ↔ migrated", name ?? ""));
}

/** Show the rule of the finding under the cursor, or one that is asked for. */
async function explainRule(made: Made): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) {
    return;
  }
  const here = vscode.languages
    .getDiagnostics(editor.document.uri)
    .filter((each) => each.source === "npumigrate" && each.range.contains(editor.selection.active))
    .map((each) => String(typeof each.code === "object" ? each.code.value : each.code));
  const asked = { prompt: vscode.l10n.t("Rule code"), placeHolder: "NPU101" };
  const code = here[0] ?? (await vscode.window.showInputBox(asked))?.trim().toUpperCase();
  if (!code) {
    return;
  }
  const rule = await ask("npumigrate.server.explained", editor.document.uri.toString(), code);
  if (typeof rule !== "string") {
    void vscode.window.showInformationMessage(vscode.l10n.t("npumigrate: there is no rule {0}.", code));
    return;
  }
  await vscode.commands.executeCommand("markdown.showPreview", made.keep(`/${code}.md`, rule));
}

async function ask(command: string, ...words: string[]): Promise<unknown> {
  if (!client?.isRunning()) {
    return undefined;
  }
  return client.sendRequest("workspace/executeCommand", { command, arguments: words });
}

/** Above a Python file with findings: the preview of its migration. */
class Lenses implements vscode.CodeLensProvider {
  readonly onDidChangeCodeLenses = vscode.languages.onDidChangeDiagnostics as vscode.Event<unknown> as vscode.Event<void>;

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const found = vscode.languages.getDiagnostics(document.uri).filter((each) => each.source === "npumigrate");
    const title = vscode.l10n.t("npumigrate: preview the migration of this file ({0} findings)", found.length);
    const lens = new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), { title, command: "npumigrate.preview" });
    return found.length ? [lens] : [];
  }
}

/** The texts of documents that commands have made. */
class Made implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  keep(path: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path });
    this.texts.set(uri.toString(), text);
    this.changed.fire(uri);
    return uri;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }
}
