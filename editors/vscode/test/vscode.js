/** A stand-in for VS Code: as much of its API as the extension and its language client touch.
 *
 * What is not spelled out is a class with no members, an event that never comes, or a function that gives
 * something to dispose of.
 */
"use strict";

const { pathToFileURL, fileURLToPath } = require("node:url");

class Disposable {
  constructor(work = () => {}) {
    this.dispose = work;
  }
  static from(...parts) {
    return new Disposable(() => parts.forEach((part) => part.dispose()));
  }
}

class TabInputText {
  constructor(uri) {
    this.uri = uri;
  }
}

class CancellationError extends Error {}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(start, end, endLine, endCharacter) {
    this.start = typeof start === "number" ? new Position(start, end) : start;
    this.end = typeof start === "number" ? new Position(endLine, endCharacter) : end;
  }
  contains(place) {
    const [from, to] = [this.start, this.end];
    const after = place.line > from.line || (place.line === from.line && place.character >= from.character);
    return after && (place.line < to.line || (place.line === to.line && place.character <= to.character));
  }
}

class Uri {
  constructor(scheme, path, text) {
    Object.assign(this, { scheme, path, authority: "", query: "", fragment: "", text });
  }
  get fsPath() {
    return this.scheme === "file" ? fileURLToPath(this.text) : this.path;
  }
  toString() {
    return this.text;
  }
  static file(path) {
    return Uri.parse(pathToFileURL(path).toString());
  }
  static parse(text) {
    const url = new URL(text);
    return new Uri(url.protocol.slice(0, -1), decodeURIComponent(url.pathname), text);
  }
  static from({ scheme, path }) {
    return new Uri(scheme, path, `${scheme}:${encodeURI(path)}`);
  }
}

class EventEmitter {
  constructor() {
    this.listeners = new Set();
    this.event = (listener, self) => {
      const bound = self ? listener.bind(self) : listener;
      this.listeners.add(bound);
      return new Disposable(() => this.listeners.delete(bound));
    };
  }
  fire(value) {
    for (const listener of this.listeners) listener(value);
  }
  dispose() {}
}

class WorkspaceEdit {
  constructor() {
    this.all = [];
  }
  replace(uri, range, text) {
    this.all.push({ uri, range, text });
  }
}

class CodeActionKind {
  constructor(value) {
    this.value = value;
  }
  append(part) {
    return new CodeActionKind(this.value ? `${this.value}.${part}` : part);
  }
}
CodeActionKind.Empty = new CodeActionKind("");

/** What a name stands for that is not spelled out. */
function unknown(name) {
  if (/^on[A-Z]/.test(name)) return () => new Disposable();
  if (/^[A-Z]/.test(name)) {
    const made = class {
      constructor(...given) {
        this.given = given;
      }
    };
    return new Proxy(made, { get: (target, key) => (key in target ? target[key] : String(key)) });
  }
  return () => new Disposable();
}

function filled(known) {
  return new Proxy(known, {
    get: (target, key) => {
      if (!(key in target) && typeof key === "string") target[key] = unknown(key);
      return target[key];
    },
  });
}

/** A VS Code with a folder, settings, and what happened in it: see the members of ``seen``. */
function editor(folder, settings) {
  const seen = { diagnostics: new Map(), commands: new Map(), executed: [], told: [], actions: [], lenses: [], made: {} };
  const configured = new EventEmitter();
  seen.configure = (key, value) => {
    settings[key] = value;
    configured.fire({ affectsConfiguration: (name) => key.startsWith(name) });
  };
  const opened = new EventEmitter();
  const changedTabs = new EventEmitter();
  const documents = [];
  const tabs = [];
  seen.open = (name, languageId, text) => {
    const uri = Uri.file(`${folder}/${name}`);
    const document = { uri, languageId, version: 1, getText: () => text, isClosed: false, notebook: undefined };
    documents.push(document);
    tabs.push({ input: new TabInputText(uri) });
    changedTabs.fire({ opened: [tabs.at(-1)], closed: [], changed: [] });
    api.window.activeTextEditor = { document, selection: { active: new Position(0, 0) } };
    opened.fire(document);
    return document;
  };
  const collection = {
    set: (uri, found) => seen.diagnostics.set(uri.toString(), found),
    delete: (uri) => seen.diagnostics.delete(uri.toString()),
    clear: () => seen.diagnostics.clear(),
    dispose: () => {},
  };
  const say = (text) => (seen.told.push(text), Promise.resolve(undefined));
  const log = filled({ append: () => {}, appendLine: (text) => seen.told.push(text), dispose: () => {} });
  const api = filled({
    l10n: { t: (text, ...values) => text.replace(/\{(\d)\}/g, (_, place) => values[place]) },
    ...{ Disposable, Position, Range, Uri, EventEmitter, WorkspaceEdit, CodeActionKind },
    ...{ TabInputText, CancellationError },
    version: "1.82.0",
    Diagnostic: class {
      constructor(range, message, severity) {
        Object.assign(this, { range, message, severity });
      }
    },
    CodeAction: class {
      constructor(title, kind) {
        Object.assign(this, { title, kind });
      }
    },
    CodeLens: class {
      constructor(range, command) {
        Object.assign(this, { range, command });
      }
    },
    TextEdit: class {
      constructor(range, newText) {
        Object.assign(this, { range, newText });
      }
    },
    CancellationTokenSource: class {
      constructor() {
        this.token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable() };
      }
      cancel() {}
      dispose() {}
    },
    env: { language: "en", appName: "test", appRoot: "", clipboard: {} },
    workspace: filled({
      workspaceFolders: [{ uri: Uri.file(folder), name: "folder", index: 0 }],
      textDocuments: documents,
      notebookDocuments: [],
      onDidOpenTextDocument: opened.event,
      onDidChangeConfiguration: configured.event,
      getWorkspaceFolder: () => api.workspace.workspaceFolders[0],
      getConfiguration: (section) => ({
        get: (key, otherwise) => settings[section ? `${section}.${key}` : key] ?? otherwise,
        inspect: () => undefined,
      }),
      createFileSystemWatcher: () => filled({}),
      registerTextDocumentContentProvider: (scheme, provider) => {
        seen.made[scheme] = provider;
        return new Disposable();
      },
    }),
    window: filled({
      createOutputChannel: () => log,
      visibleTextEditors: [],
      tabGroups: filled({ all: [{ tabs }], onDidChangeTabs: changedTabs.event }),
      showErrorMessage: say,
      showInformationMessage: say,
      showWarningMessage: say,
      showInputBox: () => Promise.resolve(seen.typed),
    }),
    languages: filled({
      match: (selector, document) =>
        [selector].flat().some((one) => one.language === document.languageId && one.scheme === document.uri.scheme)
          ? 10
          : 0,
      createDiagnosticCollection: () => collection,
      getDiagnostics: (uri) => seen.diagnostics.get(uri.toString()) ?? [],
      registerCodeLensProvider: (_, provider) => (seen.lenses.push(provider), new Disposable()),
      registerCodeActionsProvider: (_, provider) => (seen.actions.push(provider), new Disposable()),
    }),
    commands: {
      registerCommand: (name, work) => (seen.commands.set(name, work), new Disposable()),
      executeCommand: async (name, ...words) => void seen.executed.push([name, ...words]),
    },
  });
  return { api, seen };
}

module.exports = { editor, Position, Range };
