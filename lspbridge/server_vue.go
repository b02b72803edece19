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

// Since its version 3 Vue's server knows templates and styles alone. What a component's script means it asks its editor,
// who asks TypeScript's server with Vue's plugin in it; that server also has the problems of the script.

const (
	vueID      = "vue"
	vuePackage = "@vue/language-server"
	vueAnswer  = 20 * time.Second // how long Vue's server is kept waiting for TypeScript's
)

func vue() Server {
	return Server{ID: vueID, Extensions: []string{".vue"}, Workspace: jsLocks, Markers: jsRoots, Commands: [][]string{{"vue-language-server", "--stdio"}},
		Install: npm("@vue/language-server typescript-language-server typescript@5"),
		hooks:   hooks{options: vueOptions, handle: vueAsks, beside: besideVue}}
	// No Restraint: vueCompilerOptions.plugins of tsconfig.json are programs.
}

// vueOptions are for Vue's server 2, which has TypeScript in it.
func vueOptions(p *programs, argv []string, root string) map[string]any {
	if _, major := npmPackage(argv[0], vuePackage); major == 2 {
		return map[string]any{"vue": map[string]any{"hybridMode": false}, "typescript": map[string]any{"tsdk": p.tsdk(argv[0], root)}}
	}
	return nil
}

// vuePluginOptions tell TypeScript's server of Vue's plugin.
func vuePluginOptions(p *programs, argv []string, root string) map[string]any {
	if place := p.vuePlugin(root); place != "" && strings.HasPrefix(filepath.Base(argv[0]), "typescript-language-server") {
		return map[string]any{"plugins": []any{map[string]any{"name": "@vue/typescript-plugin", "location": place, "languages": []string{"vue"}}}}
	}
	return nil
}

// withTSDK tells a server where TypeScript is as a library.
func withTSDK(p *programs, argv []string, root string) map[string]any {
	return map[string]any{"typescript": map[string]any{"tsdk": p.tsdk(argv[0], root)}}
}

func vueAsks(c *client, method string, params json.RawMessage) (any, bool) {
	if method != "tsserver/request" {
		return nil, false
	}
	c.relay(params)
	return nil, true
}

// besideVue is TypeScript's server for a component, nil when it would not understand one.
func besideVue(m *Manager, look *look, path, root string) *slot {
	if m.programs.vuePlugin(root) == "" {
		return nil
	}
	row, ok := m.programs.row(typescriptID)
	if !ok {
		return nil
	}
	at := look.root(path, m.o.Root, row.Workspace)
	if !look.holds(at, row.Workspace) {
		at = look.outermost(look.root(path, m.o.Root, row.Markers), m.o.Root, row.Markers, row.Outermost)
	}
	if m.programs.vuePlugin(at) == "" || m.programs.typescript7(at) != nil || !m.programs.installed(row, at) {
		return nil
	}
	return m.slot(row, at, path)
}

// vuePlugin is where TypeScript's server finds Vue's plugin: "" where the project has no Vue, or Vue's server is none
// that needs it. It is looked for at most once a second.
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

// mentionsVue reports a project whose packages name Vue, or something made of it.
func mentionsVue(root string) bool {
	for _, name := range append([]string{"package.json"}, jsLocks...) {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err == nil && (strings.Contains(string(b), `"vue"`) || strings.Contains(string(b), "@vue/") || strings.Contains(string(b), `"nuxt`)) {
			return true
		}
	}
	return false
}

// relay answers what Vue's server asks TypeScript's. Without an answer it would wait for ever: there always is one.
func (c *client) relay(params json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(params, &list) == nil && len(list) == 1 { // [[id, command, arguments]]
		_ = json.Unmarshal(list[0], &list)
	}
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

// tsserver asks the TypeScript server of a project; nil when there is none or it does not know.
func (m *Manager) tsserver(ctx context.Context, root, command string, args json.RawMessage) json.RawMessage {
	file := subject(args)
	if file == "" {
		file = filepath.Join(root, "x.vue")
	}
	look := m.markers.look()
	s := besideVue(m, look, file, root)
	if s == nil {
		return nil
	}
	c, err := s.get(ctx)
	if err != nil {
		return nil
	}
	if c.way() != byTSServer {
		return nil
	}
	if !c.docs.has(file) { // tsserver knows only the projects of open files
		if text, there := m.text(file); there {
			c.docs.put(file, text)
		}
	}
	var r struct{ Body json.RawMessage }
	if c.call(ctx, protocol.MethodWorkspaceExecuteCommand, map[string]any{"command": tsserverRequest, "arguments": []any{command, args}}, &r) != nil {
		return nil
	}
	return r.Body
}

// subject is the file a request to tsserver is about: {"file": …}, or the first of a list.
func subject(args json.RawMessage) string {
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
