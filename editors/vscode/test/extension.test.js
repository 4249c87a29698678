/** The built extension against the real server: `NPUMIGRATE` names the command. */
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const { Module } = require("node:module");
const os = require("node:os");
const path = require("node:path");
const { afterEach, beforeEach, test } = require("node:test");
const { editor, Range } = require("./vscode.js");

const BUILT = path.join(__dirname, "..", "dist", "extension.js");
const PACKAGE = require("../package.json");
const COMMAND = process.env.NPUMIGRATE ?? "npumigrate";
const TRAIN = "import torch\n\nx = torch.zeros(2).cuda()\n";
const PATIENCE = 60_000;

let folder, extension, seen, api;

beforeEach(() => {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "npumigrate-")));
});

afterEach(async () => {
  await extension.deactivate();
  fs.rmSync(folder, { recursive: true });
});

async function start(settings = {}) {
  ({ api, seen } = editor(folder, { "npumigrate.path": COMMAND, ...settings }));
  const load = Module._load;
  Module._load = (name, ...rest) => (name === "vscode" ? api : load(name, ...rest));
  delete require.cache[BUILT];
  extension = require(BUILT);
  Module._load = load;
  const subscriptions = [];
  await extension.activate({ subscriptions });
}

async function until(condition) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = condition();
    if (found) return found;
    assert.ok(Date.now() < end, `it did not come: ${condition}; told: ${seen.told}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

async function found(document, ...codes) {
  const shown = () => (seen.diagnostics.get(document.uri.toString()) ?? []).map(codeOf);
  await until(() => JSON.stringify(shown()) === JSON.stringify(codes));
  return seen.diagnostics.get(document.uri.toString());
}

function codeOf(diagnostic) {
  return diagnostic.code?.value ?? diagnostic.code;
}

test("every command and setting of the manifest is there", async () => {
  await start();
  const declared = PACKAGE.contributes.commands.map((each) => each.command);
  for (const name of declared) assert.ok(seen.commands.has(name), name);
  for (const name of seen.commands.keys()) {
    if (!name.startsWith("npumigrate.server.")) assert.ok(declared.includes(name), name);
  }
  const source = fs.readFileSync(path.join(__dirname, "..", "src", "extension.ts"), "utf8");
  for (const event of PACKAGE.activationEvents) {
    assert.ok(source.includes(`"${event.replace("onLanguage:", "")}"`), event);
  }
});

test("every text of the extension is in Chinese, too", () => {
  const read = (name) => JSON.parse(fs.readFileSync(path.join(__dirname, "..", name), "utf8"));
  const manifest = fs.readFileSync(path.join(__dirname, "..", "package.json"), "utf8");
  const keys = [...manifest.matchAll(/"%(\w+)%"/g)].map((each) => each[1]).sort();
  for (const name of ["package.nls.json", "package.nls.zh-cn.json"]) {
    assert.deepEqual(Object.keys(read(name)).sort(), keys);
  }
  const source = fs.readFileSync(path.join(__dirname, "..", "src", "extension.ts"), "utf8");
  const chinese = read("l10n/bundle.l10n.zh-cn.json");
  for (const text of Object.keys(chinese)) assert.ok(source.includes(`"${text}"`), text);
  assert.equal(Object.keys(chinese).length, source.match(/vscode\.l10n\.t\(/g).length);
});

test("findings, fixes, a preview and a rule come from the server", async () => {
  await start({ "npumigrate.version": "2.6" });
  const train = seen.open("train.py", "python", TRAIN);
  const [, cuda] = await found(train, "NPU901", "NPU111");
  assert.deepEqual(cuda.range.start, { line: 2, character: 4 });

  const token = { isCancellationRequested: false, onCancellationRequested: () => ({ dispose() {} }) };
  const context = { diagnostics: [], only: undefined, triggerKind: 1 };
  const actions = await seen.actions[0].provideCodeActions(train, new Range(2, 0, 2, 5), context, token);
  const fix = actions.find((each) => each.title.startsWith("NPU111: Replace "));
  assert.deepEqual(fix.edit.all.map((each) => each.text).sort(), ["import torch_npu\n", "npu"]);

  await seen.commands.get("npumigrate.preview")();
  const [name, left, right] = seen.executed.pop();
  assert.equal(name, "vscode.diff");
  assert.equal(left, train.uri);
  const migrated = "import torch\nimport torch_npu\n\nx = torch.zeros(2).npu()\n";
  assert.equal(seen.made.npumigrate.provideTextDocumentContent(right), migrated);

  const [lens] = seen.lenses[0].provideCodeLenses(train);
  assert.equal(lens.command.title, "npumigrate: preview the migration of this file (2 findings)");

  await seen.commands.get("npumigrate.explainRule")(); // of the finding under the cursor
  const [shown, rule] = seen.executed.pop();
  assert.equal(shown, "markdown.showPreview");
  assert.match(seen.made.npumigrate.provideTextDocumentContent(rule), /^# NPU901: /);

  const script = seen.open("run.sh", "shellscript", "export CUDA_VISIBLE_DEVICES=0\n");
  await found(script, "NPU410");
  api.window.activeTextEditor.selection.active.line = 9;
  seen.typed = "npu000";
  await seen.commands.get("npumigrate.explainRule")();
  assert.equal(seen.told.pop(), "npumigrate: there is no rule NPU000.");
});

test("settings that change reach the server, and a restart finds the same", async () => {
  await start({ "npumigrate.version": "2.6" });
  const train = seen.open("train.py", "python", TRAIN);
  await found(train, "NPU901", "NPU111");
  fs.writeFileSync(path.join(folder, "own.yaml"), OWN);
  seen.configure("npumigrate.rules", ["own.yaml"]);
  await found(train, "NPU901", "ACME101", "NPU111");
  seen.diagnostics.clear();
  await seen.commands.get("npumigrate.restart")();
  await found(train, "NPU901", "ACME101", "NPU111");
});

test("a command that cannot be started is told", async () => {
  await start({ "npumigrate.path": "/no/such/npumigrate" });
  await until(() => seen.told.some((line) => line.includes("/no/such/npumigrate server cannot be started.")));
});

const OWN = `\
- code: ACME101
  name: acme-zeros
  summary: torch.zeros is slow
  kind: name
  match: torch.zeros
  fix: none
  why: |
    For a test.
  examples:
    - before: |
        import torch
        torch.zeros(1)
      after: |
        import torch
        torch.zeros(1)
    - unchanged: |
        zeros(1)
`;
