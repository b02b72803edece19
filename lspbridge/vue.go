package lspbridge

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.lsp.dev/protocol"
)

// Since its version 3 Vue's server knows templates and styles alone. What a component's script means it asks its editor,
// who asks TypeScript's server with Vue's plugin in it; that server also has the problems of the script.

const (
	vueID        = "vue"
	typescriptID = "typescript"
	vuePackage   = "@vue/language-server"
	vueAnswer    = 20 * time.Second // how long Vue's server is kept waiting for TypeScript's
)

// besideVue is TypeScript's server for a component, nil when it would not understand one.
func (m *Manager) besideVue(look *look, path, root string) *slot {
	if m.vuePlugin(root) == "" {
		return nil
	}
	row, ok := m.row(typescriptID)
	if !ok {
		return nil
	}
	at := look.root(path, m.o.Root, row.Workspace)
	if !look.holds(at, row.Workspace) {
		at = look.outermost(look.root(path, m.o.Root, row.Markers), m.o.Root, row.Markers, row.Outermost)
	}
	if m.vuePlugin(at) == "" || m.typescript7(at) != nil || !m.installed(row, at) {
		return nil
	}
	return m.slot(row, at, path)
}

func (m *Manager) row(id string) (Server, bool) {
	rows := m.rows()
	i := slices.IndexFunc(rows, func(s Server) bool { return s.ID == id })
	if i < 0 {
		return Server{}, false
	}
	return rows[i], true
}

// vuePlugin is where TypeScript's server finds Vue's plugin: "" where the project has no Vue, or Vue's server is none
// that needs it. It is looked for at most once a second.
func (m *Manager) vuePlugin(root string) string {
	key := slotKey{vuePackage, root}
	m.mu.Lock()
	was, known := m.programs[key]
	m.mu.Unlock()
	if known && time.Since(was.at) < lookAgain {
		return was.place
	}
	place := ""
	if row, ok := m.row(vueID); ok && mentionsVue(root) {
		if _, argv, err := m.resolve(row, root); err == nil {
			if dir, major := npmPackage(argv[0], vuePackage); major >= 3 {
				place = dir
			}
		}
	}
	m.mu.Lock()
	m.programs[key] = program{there: place != "", at: time.Now(), place: place}
	m.mu.Unlock()
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

// npmPackage finds the package that a program in some node_modules/.bin belongs to, and its major version.
func npmPackage(program, name string) (dir string, major int) {
	tries := []string{filepath.Join(filepath.Dir(filepath.Dir(program)), filepath.FromSlash(name)), // beside .bin
		filepath.Join(filepath.Dir(filepath.Dir(program)), "lib", "node_modules", filepath.FromSlash(name))} // npm i -g
	if real, err := filepath.EvalSymlinks(program); err == nil {
		tries = append([]string{filepath.Dir(filepath.Dir(real))}, tries...)
	}
	for _, dir := range tries {
		var pkg struct{ Name, Version string }
		if b, err := os.ReadFile(filepath.Join(dir, "package.json")); err != nil || json.Unmarshal(b, &pkg) != nil || pkg.Name != name {
			continue
		}
		for _, r := range pkg.Version {
			if r < '0' || r > '9' {
				break
			}
			major = min(10*major+int(r-'0'), 1000)
		}
		return dir, major
	}
	return "", 0
}

// webProject lays over a row's options what servers out of the VS Code world are told by their extensions: where
// TypeScript is, that Vue's server (2) is the only one, that TypeScript's is not.
func (m *Manager) webProject(row Server, argv []string, root string) Server {
	var options map[string]any
	switch row.ID {
	case typescriptID:
		if place := m.vuePlugin(root); place != "" && strings.HasPrefix(filepath.Base(argv[0]), "typescript-language-server") {
			options = map[string]any{"plugins": []any{map[string]any{"name": "@vue/typescript-plugin", "location": place, "languages": []string{"vue"}}}}
		}
	case vueID:
		if _, major := npmPackage(argv[0], vuePackage); major == 2 {
			options = map[string]any{"vue": map[string]any{"hybridMode": false}, "typescript": map[string]any{"tsdk": m.tsdk(argv[0], root)}}
		}
	case "astro":
		options = map[string]any{"typescript": map[string]any{"tsdk": m.tsdk(argv[0], root)}}
	}
	if options != nil {
		base, _ := json.Marshal(options)
		over := row.Init
		if over == "" {
			over = "{}"
		}
		row.Init = mergeJSON(string(base), json.RawMessage(over)) // the person has the last word
	}
	return row
}

// tsdk is the folder of a TypeScript that is a library: the trusted project's, the one installed with the server, ours.
func (m *Manager) tsdk(program, root string) string {
	var tops []string
	if m.o.Trusted {
		tops = append(tops, root, m.o.Root)
	}
	if real, err := filepath.EvalSymlinks(program); err == nil {
		for dir := filepath.Dir(real); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			tops = append(tops, dir)
		}
	}
	for _, bin := range m.o.Bin {
		tops = append(tops, filepath.Dir(filepath.Dir(bin)))
	}
	for _, top := range tops {
		if dir := filepath.Join(top, "node_modules", "typescript", "lib"); exists(filepath.Join(dir, "typescript.js")) {
			return dir
		}
	}
	return ""
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
	s := m.besideVue(look, file, root)
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
