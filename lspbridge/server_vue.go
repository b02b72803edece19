package lspbridge

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.lsp.dev/protocol"
)

// Since version 3 Vue's server checks only templates and styles. For types it sends tsserver/request to its client, which must forward it
// to TypeScript's server with Vue's plugin loaded. That server also reports the problems of the script part.

// vueAnswer must be long enough for TypeScript to load a project, because Vue's server asks while it opens the first component.
const (
	vueID      = "vue"
	vuePackage = "@vue/language-server"
	vueAnswer  = 20 * time.Second // limit for TypeScript's answer, for which Vue's server waits
)

// vue is Vue's server; from version 3 on it needs TypeScript's server beside it.
func vue() Server {
	return Server{ID: vueID, Extensions: []string{".vue"}, Workspace: jsLocks, Markers: jsRoots, Commands: [][]string{{"vue-language-server", "--stdio"}},
		Install: npm("@vue/language-server typescript-language-server typescript@5"),
		hooks:   hooks{options: vueOptions, handle: vueAsks, beside: besideVue}}
	// No Restraint: vueCompilerOptions.plugins of tsconfig.json are programs.
}

// vueOptions returns the options for version 2 of Vue's server, which includes TypeScript.
func vueOptions(p *programs, argv []string, root string) map[string]any {
	if _, major := npmPackage(argv[0], vuePackage); major == 2 {
		return map[string]any{"vue": map[string]any{"hybridMode": false}, "typescript": map[string]any{"tsdk": p.tsdk(argv[0], root)}}
	}
	return nil
}

// vuePluginOptions returns the options that load Vue's plugin into TypeScript's server.
func vuePluginOptions(p *programs, argv []string, root string) map[string]any {
	if place := p.vuePlugin(root); place != "" && strings.HasPrefix(filepath.Base(argv[0]), "typescript-language-server") {
		return map[string]any{"plugins": []any{map[string]any{"name": "@vue/typescript-plugin", "location": place, "languages": []string{"vue"}}}}
	}
	return nil
}

// withTSDK returns the options that tell a server where TypeScript's library is.
func withTSDK(p *programs, argv []string, root string) map[string]any {
	return map[string]any{"typescript": map[string]any{"tsdk": p.tsdk(argv[0], root)}}
}

// vueAsks handles tsserver/request, the notification with which Vue's server sends a request for tsserver.
func vueAsks(c *client, method string, params json.RawMessage) (any, bool) {
	if method != "tsserver/request" {
		return nil, false
	}
	relayToTypeScript(c, params)
	return nil, true
}

// besideVue returns TypeScript's server for a component; nil when that server would not understand components: without Vue's plugin, or
// with TypeScript 7, which loads no plugins.
func besideVue(f *fleet, look *rootSearch, path, root string) *slot {
	if f.programs.vuePlugin(root) == "" {
		return nil
	}
	row, ok := f.programs.row(typescriptID)
	if !ok {
		return nil
	}
	at := look.root(path, f.o.Root, row.Workspace)
	if !look.holds(at, row.Workspace) {
		at = look.outermost(look.root(path, f.o.Root, row.Markers), f.o.Root, row.Markers, row.Outermost)
	}
	if f.programs.vuePlugin(at) == "" || f.programs.typescript7(at) != nil || !f.programs.installed(row, at) {
		return nil
	}
	return f.slot(row, at, path)
}

// vuePlugin returns the folder of Vue's plugin for TypeScript's server; "" when the project does not use Vue, or when Vue's server has
// TypeScript built in (version 2). Results are cached for one second (lookAgain).
func (p *programs) vuePlugin(root string) string {
	key := slotKey{vuePackage, root}
	p.mu.Lock()
	was, known := p.known[key]
	p.mu.Unlock()
	if known && time.Since(was.at) < lookAgain {
		return was.place
	}
	place := ""
	if row, ok := p.row(vueID); ok && mentionsVue(root) {
		if _, argv, err := p.find(row, root); err == nil {
			if dir, major := npmPackage(argv[0], vuePackage); major >= 3 {
				place = dir
			}
		}
	}
	p.mu.Lock()
	p.known[key] = program{there: place != "", at: time.Now(), place: place}
	p.mu.Unlock()
	return place
}

// mentionsVue reports whether the project's package files name Vue or a framework built on it. Without this check every TypeScript project
// would load the plugin.
func mentionsVue(root string) bool {
	for _, name := range append([]string{"package.json"}, jsLocks...) {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err == nil && (strings.Contains(string(b), `"vue"`) || strings.Contains(string(b), "@vue/") || strings.Contains(string(b), `"nuxt`)) {
			return true
		}
	}
	return false
}

// relayToTypeScript forwards a request of Vue's server to TypeScript's server and returns the answer. It always answers, with null after a
// failure, because Vue's server waits without a timeout. It works in the background, because handlers run one after the other.
func relayToTypeScript(c *client, params json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(params, &list) == nil && len(list) == 1 { // [[id, command, arguments]]
		_ = json.Unmarshal(list[0], &list)
	}
	// Without an id and a command there is nothing to answer.
	if len(list) < 2 {
		return
	}
	id, args := list[0], json.RawMessage("null")
	var command string
	_ = json.Unmarshal(list[1], &command)
	if len(list) > 2 {
		args = list[2]
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), vueAnswer)
		defer cancel()
		// When Vue's server ends, so does the request to TypeScript's.
		go func() {
			select {
			case <-c.gone:
				cancel()
			case <-ctx.Done():
			}
		}()
		body := json.RawMessage("null")
		if c.host.tsserver != nil {
			if b := c.host.tsserver(ctx, c.root, command, args); len(b) > 0 {
				body = b
			}
		}
		_ = c.notify("tsserver/response", []any{[]any{id, body}})
	}()
}

// tsserver forwards a request to the TypeScript server of a project. It returns nil when there is none or when it fails.
func (f *fleet) tsserver(ctx context.Context, root, command string, args json.RawMessage) json.RawMessage {
	file := requestFile(args)
	if file == "" {
		file = filepath.Join(root, "x.vue")
	}
	look := f.markers.search()
	s := besideVue(f, look, file, root)
	if s == nil {
		return nil
	}
	c, err := s.get(ctx)
	if err != nil {
		return nil
	}
	if c.mode() != byTSServer {
		return nil
	}
	if !c.docs.has(file) { // tsserver knows only the projects of open files
		if text, there := f.text(file); there {
			c.docs.put(file, text)
		}
	}
	var r struct{ Body json.RawMessage }
	if c.call(ctx, protocol.MethodWorkspaceExecuteCommand, map[string]any{"command": tsserverRequest, "arguments": []any{command, args}}, &r) != nil {
		return nil
	}
	return r.Body
}

// requestFile returns the file of a tsserver request: the member "file", or the first element of a list; "" when there is none.
func requestFile(args json.RawMessage) string {
	var o struct{ File string }
	if json.Unmarshal(args, &o) == nil && filepath.IsAbs(o.File) {
		return filepath.Clean(o.File)
	}
	var list []json.RawMessage
	var first string
	if json.Unmarshal(args, &list) == nil && len(list) > 0 && json.Unmarshal(list[0], &first) == nil && filepath.IsAbs(first) {
		return filepath.Clean(first)
	}
	return ""
}
